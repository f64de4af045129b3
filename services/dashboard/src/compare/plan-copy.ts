import type { FlagState, UpdateFlagState } from "../api/schema.d.ts";
import { type Difference, haveEqualRules, stateDifferences } from "../state/difference.ts";

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
  const { enabled, rollout_percentage, targeting_rules } = source;
  return {
    flag: { id: flag.id, key: flag.key },
    version: target.version,
    changes: stateDifferences(target, source),
    body: {
      ...(enabled !== target.enabled && { enabled }),
      ...(rollout_percentage !== target.rollout_percentage && { rollout_percentage }),
      ...(!haveEqualRules(target.targeting_rules, targeting_rules) && { targeting_rules }),
    },
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
