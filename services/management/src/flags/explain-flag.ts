import { setImmediate as nextTurn } from "node:timers/promises";
import type { ExplainFlag, FlagExplanation, Serve } from "@halyard/contracts";
import {
  type Attributes,
  bucketOf,
  createContext,
  type Explanation,
  explainInSteps,
  type ResolvedState,
  readAttributes,
} from "@halyard/evaluation";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { loadReferences } from "./explained-references.ts";
import { changedContent, type FlagInEnvironment } from "./flag.ts";
import { asRequestProblem, checkReferences, hasReferences } from "./references.ts";
import type { WithCheckedRules } from "./targeting-rules.ts";
import { valueOfVariation } from "./variations.ts";

/** Evaluates a flag for a user, with changed settings if given, and returns how each rule contributed. */
export async function explainFlag(
  sql: Sql,
  { flag, state }: FlagInEnvironment,
  request: {
    user: ExplainFlag["user"];
    changed: WithCheckedRules<NonNullable<ExplainFlag["state"]>>;
    newId: () => string;
    /** Called with the time of the event loop that the evaluation has taken. */
    onUsed: (ms: number) => void;
  },
): Promise<FlagExplanation | Problem> {
  const { changed, newId, onUsed } = request;
  const attributes = readUser(request.user ?? {});
  if (isProblem(attributes)) return attributes;
  const content = changedContent(flag, state.content, changed, { newId, parent: "/state" });
  if (isProblem(content)) return content;
  const wrong = hasReferences(changed)
    ? await checkReferences(sql, { flag, ...state }, content)
    : undefined;
  if (wrong !== undefined) return asRequestProblem(wrong, "/state");
  const variations = flag.variations ?? undefined;
  const evaluated = { key: flag.key, ...content, ...(variations && { variations }) };
  const scope = { projectId: flag.projectId, environmentId: state.environmentId };
  const loaded = await loadReferences(sql, scope, evaluated, { attributes, onUsed });
  if (isProblem(loaded)) return loaded;
  const context = createContext(attributes);
  const { rules, served, requires, ...outcome } = await explainInTurns(
    explainInSteps(evaluated, context, loaded.references),
    onUsed,
  );
  const { enabled, rollout_percentage } = evaluated;
  const split = outcome.reason === "split" ? splitOf(evaluated, rules, attributes) : {};
  const trace = {
    enabled,
    rollout_percentage,
    ...(requires && { requires }),
    rules: withChangesOfAudiences(rules, loaded.changedAt),
    ...split,
  };
  if (served === undefined) return { ...outcome, trace };
  const { index, bucket } = served;
  const variation = variations?.[index];
  return {
    reason: outcome.reason,
    value: variation === undefined ? null : valueOfVariation(variation),
    variation: variation?.key ?? null,
    trace: { ...trace, serve: served.serve as Serve | undefined, bucket },
  };
}

const attributesAreInvalid = createProblem(
  "VALIDATION_001",
  "/user has an attribute that is not a string, a number, true, false, or an array of these",
);

/**
 * Reads a user as the edge does: `id` wins over `attributes`, and these win over the other members. The message does not
 * name the attribute, because names can be as private as values.
 */
function readUser(user: NonNullable<ExplainFlag["user"]>): Attributes | Problem {
  const { attributes, ...members } = user;
  const outer = readAttributes(members, "reject");
  const inner = readAttributes(attributes ?? {}, "reject");
  if (!outer.ok || !inner.ok) return attributesAreInvalid;
  const ownId = readAttributes({ id: members.id }, "reject");
  const merged = new Map([...outer.attributes, ...inner.attributes]);
  const given = ownId.ok ? ownId.attributes.get("id") : undefined;
  return given === undefined ? merged : merged.set("id", given);
}

/** Time after which an explanation lets other requests run. Rules of the maximum size can take seconds. */
const sliceMs = 10;

async function explainInTurns(
  steps: Generator<undefined, Explanation>,
  onUsed: (ms: number) => void,
): Promise<Explanation> {
  for (let beganMs = performance.now(); ; ) {
    const step = steps.next();
    const usedMs = performance.now() - beganMs;
    if (step.done !== true && usedMs < sliceMs) continue;
    onUsed(usedMs);
    if (step.done === true) return step.value;
    await nextTurn();
    beganMs = performance.now();
  }
}

/** Adds to the trace of each audience the time of its last change. */
function withChangesOfAudiences(
  rules: Explanation["rules"],
  changedAt: ReadonlyMap<string, Date>,
): FlagExplanation["trace"]["rules"] {
  if (changedAt.size === 0) return rules;
  return rules.map(({ conditions, ...rule }) => ({
    ...rule,
    conditions: conditions.map((condition) => {
      const changed = "audience" in condition ? changedAt.get(condition.audience) : undefined;
      return changed === undefined
        ? condition
        : { ...condition, changed_at: changed.toISOString() };
    }),
  }));
}

/** Returns the percentage that decided, and the user's bucket. Nothing if a split of all users decided. */
function splitOf(
  state: ResolvedState,
  rules: Explanation["rules"],
  attributes: Attributes,
): Pick<FlagExplanation["trace"], "split"> {
  const index = rules.findIndex(({ matched }) => matched);
  const percentage = state.targeting_rules[index]?.rollout_percentage ?? state.rollout_percentage;
  if (percentage === 100) return {};
  const unit = attributes.get(state.bucket_by ?? "id");
  const isUnit = (typeof unit === "string" && unit !== "") || typeof unit === "number";
  const bucket = isUnit ? bucketOf(state.bucket_seed ?? state.key, String(unit)) : null;
  return { split: { percentage, bucket } };
}
