import { createProblem, type Problem } from "@halyard/http";
import type { ChangeContext } from "../access/change-context.ts";
import { decideChange } from "../flags/decide-flag.ts";
import type { Decision, Flag, FlagEnvironment, HistoryEntry, StoredState } from "../flags/flag.ts";
import { checkRestorable } from "../flags/variations.ts";

/** The result of a rollback, with the history entry that it restores. */
type RollbackDecision = Decision & { state: StoredState; restored: HistoryEntry };

/**
 * Decides a rollback: restores the state before the newest history entry. It is a change like any other and adds an
 * entry, so a second rollback restores the state before the first one.
 */
export function decideRollback(
  current: { flag: Flag; state: StoredState; environment: FlagEnvironment },
  newestFirst: readonly HistoryEntry[],
  context: ChangeContext,
): RollbackDecision | Problem {
  const [, restored] = newestFirst;
  if (restored === undefined) return nothingBefore;
  const lost = checkRestorable(current.flag, restored.content);
  if (lost !== undefined) return lost;
  const decision = decideChange(current, { content: restored.content }, context);
  // Consecutive entries differ, unless the tables were changed by hand.
  if (decision === "unchanged") return nothingBefore;
  return { ...decision, restored };
}

const nothingBefore = createProblem(
  "CONFLICT_002",
  "There is nothing to roll back to: the history contains no earlier state.",
);
