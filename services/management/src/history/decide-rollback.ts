import { createProblem, type Problem } from "@halyard/service";
import type { ChangeContext } from "../access/change-context.ts";
import { decideChange } from "../flags/decide-flag.ts";
import type { Decision, Flag, FlagEnvironment, FlagState, HistoryEntry } from "../flags/flag.ts";

/** What follows from going back, and the entry of the history that is in effect again. */
export type RollbackDecision = Decision & { state: FlagState; restored: HistoryEntry };

/**
 * The way back: the state that stood before the newest entry becomes the present one, as a change
 * like any other, with an entry of its own. So going back twice leads to where one was.
 */
export function decideRollback(
  current: { flag: Flag; state: FlagState; environment: FlagEnvironment },
  newestFirst: readonly HistoryEntry[],
  context: ChangeContext,
): RollbackDecision | Problem {
  const [, restored] = newestFirst;
  if (restored === undefined) return nothingBefore;
  const decision = decideChange(
    current,
    {
      enabled: restored.enabled,
      rollout_percentage: restored.rolloutPercentage,
      targeting_rules: restored.targetingRules,
    },
    context,
  );
  // Every entry differs from the one before it, unless somebody wrote into the tables by hand.
  if (decision === "unchanged") return nothingBefore;
  return { ...decision, restored };
}

const nothingBefore = createProblem(
  "CONFLICT_002",
  "There is nothing to roll back to: the state has been like this from the beginning.",
);
