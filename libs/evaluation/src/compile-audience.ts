import { attributeName } from "./attribute-name.ts";
import { compileComparisonOf, neverHolds } from "./compile-condition.ts";
import type { CompiledAudience, CompiledCondition } from "./compiled.ts";
import type { EvaluationContext } from "./context.ts";
import { compileMembership } from "./fingerprints.ts";
import type { Audience, AudienceList } from "./flag-state.ts";
import { LastResult } from "./last-result.ts";

/**
 * Compiles an audience. `chunks` are those that its list names, in their order. Malformed data never throws: such
 * conditions do not hold, and such lists have no members.
 */
export function compileAudience(
  audience: Audience,
  chunks: readonly Uint8Array[] = [],
): CompiledAudience {
  const alternatives = compileMatch(audience.match);
  const isListed = audience.list && compileList(audience.list, chunks);
  const isIn = new LastResult<boolean>({
    of: (context) =>
      isListed?.(context) === true ||
      alternatives.some((conditions) => conditions.every(({ holds }) => holds(context))),
    inSteps: (context) => isInInSteps({ alternatives, isListed }, context),
  });
  const condition: CompiledCondition = {
    canHold: alternatives.length > 0 || chunks.length > 0,
    holds: (context) => isIn.of(context),
    sameAs: undefined,
    obstacle: () => undefined,
    prepare: (context, pass) => isIn.inSteps(context, pass),
  };
  return { audience, condition, isIn, alternatives, isListed };
}

/** An empty alternative, which no audience can have, would hold for everyone. */
function compileMatch(match: Audience["match"]): CompiledAudience["alternatives"] {
  if (!Array.isArray(match)) return [];
  return (match as Audience["match"]).map((conditions) =>
    Array.isArray(conditions) && conditions.length > 0
      ? conditions.map(compileComparisonOf)
      : [neverHolds],
  );
}

/** Evaluates one condition at a time. */
function* isInInSteps(
  { alternatives, isListed }: Pick<CompiledAudience, "alternatives" | "isListed">,
  context: EvaluationContext,
): Generator<undefined, boolean> {
  if (isListed?.(context) === true) return true;
  for (const conditions of alternatives) {
    let holdsSoFar = true;
    for (const { holds } of conditions) {
      yield;
      holdsSoFar = holds(context);
      if (!holdsSoFar) break;
    }
    if (holdsSoFar) return true;
  }
  return false;
}

function compileList(
  list: AudienceList,
  chunks: readonly Uint8Array[],
): (context: EvaluationContext) => boolean {
  const has = compileMembership(list, chunks);
  const { text: name, number } = attributeName(list.attribute);
  return (context) => {
    const subject = context.find(name, number);
    if (subject === undefined) return false;
    const { elements } = subject;
    return elements === undefined
      ? has(subject.text)
      : elements.subjects.some(({ text }) => has(text));
  };
}
