import type { UpdateFlagState } from "../api/schema.d.ts";
import { type Proposal, titleOf } from "../proposals/proposal.ts";
import type { Where } from "../session/permissions.ts";
import type { Difference } from "../state/difference.ts";
import type { FlagState, State } from "../state/flag-state.ts";
import { withoutRanges } from "../state/serve.ts";
import { differingMembers, memberNames, requestFor, stateDifferences } from "../state/state.ts";

/** One flag in both environments. */
export type CopiedFlag = {
  flag: { id: string; key: string };
  source: FlagState;
  target: FlagState;
  /** Says which SDKs of the target do not support the state of the source, and which flags turn off too. */
  warning?: string | undefined;
};

/**
 * The users of splits in the target: those who moved least from what they had there, or those who have the same
 * variation in the source.
 */
export type CopiedUsers = "least-moved" | "same";

/** The changes that copying one flag makes, decided from its states. */
export type PlannedCopy = Pick<CopiedFlag, "flag" | "warning"> & {
  /** The version of the target's state that the preview shows. The change is made to this version only. */
  version: number;
  changes: readonly Difference[];
  body: UpdateFlagState;
};

/** Plans to give the target the state of the source. The request contains only what differs. */
export function planCopy(
  { flag, source, target, warning }: CopiedFlag,
  users: CopiedUsers,
): PlannedCopy {
  const copied = users === "same" ? source : withoutRangesIn(source);
  return {
    flag: { id: flag.id, key: flag.key },
    warning,
    version: target.version,
    changes: stateDifferences(target, copied),
    body: requestFor(copied, differingMembers(target, copied, memberNames)),
  };
}

/** Proposes all planned changes in one request. */
export function copyProposal(
  plans: readonly PlannedCopy[],
  { from, to }: { from: Where; to: Where },
): Proposal {
  const keys = plans.map(({ flag }) => flag.key);
  return {
    title: titleOf(`Copy ${flagsText(keys)} from ${from.name} to ${to.name}`, []),
    changes: plans.map(({ flag, version, body }) => ({
      ...{ kind: "state", flag_id: flag.id, environment_id: to.id, base_version: version },
      patch: body,
    })),
    differences: plans.map(({ flag, changes }) => ({ label: flag.key, parts: changes })),
  };
}

const flagsText = (keys: readonly string[]): string =>
  keys.length === 1 ? (keys[0] ?? "") : `${keys.length} flags`;

/** Returns a state with the weights of its splits only. The API then allocates buckets so that the fewest users move. */
function withoutRangesIn(state: State): State {
  const { serve, targeting_rules: rules } = state;
  return {
    ...state,
    ...(serve && { serve: withoutRanges(serve) }),
    targeting_rules: rules.map((rule) =>
      rule.serve === undefined ? rule : { ...rule, serve: withoutRanges(rule.serve) },
    ),
  };
}

/** Returns whether a state has a split, whose users can be copied too. */
export const hasSplit = ({ serve, targeting_rules: rules }: State): boolean =>
  [serve, ...rules.map((rule) => rule.serve)].some((each) => each !== undefined && "split" in each);

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
