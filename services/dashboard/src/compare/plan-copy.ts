import type { FlagState, UpdateFlagState } from "../api/schema.d.ts";
import type { Difference } from "../state/difference.ts";
import { differingMembers, memberNames, requestFor, stateDifferences } from "../state/state.ts";

/** The changes that copying one flag makes, decided from its states. */
export type PlannedCopy = {
  flag: { id: string; key: string };
  /** The version of the target's state that the preview shows. The change is made to this version only. */
  version: number;
  changes: readonly Difference[];
  body: UpdateFlagState;
};

/** Plans to give the target the state of the source. The request contains only what differs. */
export function planCopy(
  flag: { id: string; key: string },
  source: FlagState,
  target: FlagState,
): PlannedCopy {
  return {
    flag: { id: flag.id, key: flag.key },
    version: target.version,
    changes: stateDifferences(target, source),
    body: requestFor(source, differingMembers(target, source, memberNames)),
  };
}

export type CopyOutcome =
  | { kind: "waiting" }
  | { kind: "running" }
  | { kind: "copied" }
  | { kind: "conflict" }
  | { kind: "stopped" }
  | { kind: "failed"; reason: string };

export const outcomeTexts: Readonly<Record<CopyOutcome["kind"], string>> = {
  waiting: "Waiting",
  running: "Copying…",
  copied: "Copied",
  conflict: "Changed meanwhile",
  stopped: "Not copied",
  failed: "Failed",
};

/** Says how a copy ended: "2 copied, 1 changed meanwhile". */
export function summaryOfCopy(outcomes: readonly CopyOutcome[]): string {
  const counts = Map.groupBy(outcomes, ({ kind }) => kind);
  return [...counts]
    .map(([kind, found]) => `${found.length} ${outcomeTexts[kind].toLowerCase()}`)
    .join(", ");
}
