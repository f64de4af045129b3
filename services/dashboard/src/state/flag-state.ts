import type {
  TargetingRule as StoredRule,
  FlagState as StoredState,
  State as WholeState,
} from "../api/schema.d.ts";

/**
 * The variations that a typed flag serves: one, or a split by weights that add up to 100. Without ranges of
 * buckets, which drafts and copies omit, the API allocates them so that the fewest users move.
 */
export type Serve = { variation: string } | { split: Share[] };

type Share = {
  variation: string;
  /** Percentage with at most two decimals. */
  weight: number;
  /** Half-open ranges of buckets from 0 to 10,000. */
  ranges?: number[][];
};

export type TargetingRule = Omit<StoredRule, "serve"> & { serve?: Serve };

type Targeting = { targeting_rules: TargetingRule[]; serve?: Serve };

/** The state of a flag in one environment, stored or edited. */
export type State = Omit<WholeState, keyof Targeting> & Targeting;

/** A state as the API returns it. */
export type FlagState = Omit<StoredState, keyof Targeting> & Targeting;
