import { type ChangedFlag, changedFlags, type EnvironmentView } from "./environment-view.ts";
import { LinkedFlag } from "./prepared-flag.ts";

/** The keys of everything that differs between two states of the rules of an environment. */
export type ChangedRules = {
  readonly flags: readonly string[];
  readonly audiences: readonly string[];
};

/**
 * Compares the rules of two views. A flag differs if its rules or its needs do, but not if only an audience or a flag
 * that it refers to does.
 */
export function changedRules(before: EnvironmentView, after: EnvironmentView): ChangedRules {
  const flags = changedFlags(before, after).filter((flag) => hasOtherRules(flag));
  return {
    flags: flags.map(({ key }) => key),
    audiences: changedAudiences(before, after),
  };
}

function hasOtherRules({ before, after }: ChangedFlag): boolean {
  if (before === undefined || after === undefined || before.entry !== after.entry) return true;
  return (
    before instanceof LinkedFlag && after instanceof LinkedFlag && hasOtherNeeds(before, after)
  );
}

/** Compares the needs of two forms of one entry, which differ only by those of its audiences. */
function hasOtherNeeds({ linked: before }: LinkedFlag, { linked: after }: LinkedFlag): boolean {
  if (before.audiences.size !== after.audiences.size) return true;
  for (const [key, audience] of after.audiences) {
    const earlier = before.audiences.get(key);
    if (earlier !== audience && earlier?.needs.join() !== audience.needs.join()) return true;
  }
  return false;
}

function changedAudiences(
  { links: { audiences: before } }: EnvironmentView,
  { links: { audiences: after } }: EnvironmentView,
): string[] {
  if (before === after) return [];
  const keys = new Set([...before.keys(), ...after.keys()]);
  return [...keys].filter((key) => before.get(key) !== after.get(key));
}
