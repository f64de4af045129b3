/** Evaluations of single flags, of one environment within one hour. */
export type FlagCounts = {
  /** By flag id. Undefined if there are none. */
  flags: Map<string, FlagCount> | undefined;
  /** Number of counters of variations in `flags`. */
  variationCounters: number;
};

type FlagCount = {
  evaluations: number;
  evaluatedAtMs: number;
  /** Evaluations by key of the variation. Undefined for boolean flags. */
  variations: Map<string, number> | undefined;
};

/**
 * Maximum number of flags of an environment and hour. It keeps the flags of one environment within one message, and
 * leaves room for other environments.
 */
export const maxFlagsOfEnvironment = 5_000;

/**
 * Maximum number of variations of an environment and hour. Beyond it, an evaluation counts for its flag only. The
 * variations have their own maximum, so that they do not take the room of flags.
 */
export const maxVariationsOfEnvironment = maxFlagsOfEnvironment / 2;

/** An evaluation of one flag. */
export type EvaluatedFlag = {
  flagId: string;
  nowMs: number;
  /** The key of the variation. Undefined for a boolean flag, and for the caller's default. */
  variation: string | undefined;
};

/** Counts evaluations in at most `maxCounters` counters of flags and variations in all environments together. */
export function createFlagCounters(maxCounters: number) {
  let counters = 0;

  /** Returns the new counter of a flag; undefined if there is no room. */
  function addFlag(counts: FlagCounts, flagId: string): FlagCount | undefined {
    const size = counts.flags?.size ?? 0;
    if (counters >= maxCounters || size >= maxFlagsOfEnvironment) return undefined;
    counters += 1;
    const count = { evaluations: 0, evaluatedAtMs: 0, variations: undefined };
    counts.flags ??= new Map();
    counts.flags.set(flagId, count);
    return count;
  }

  function addVariation(counts: FlagCounts, count: FlagCount, variation: string): void {
    const known = count.variations?.get(variation);
    if (known === undefined) {
      const isFull = counts.variationCounters >= maxVariationsOfEnvironment;
      if (counters >= maxCounters || isFull) return;
      counters += 1;
      counts.variationCounters += 1;
    }
    count.variations ??= new Map();
    count.variations.set(variation, (known ?? 0) + 1);
  }

  return {
    /** Returns false if there is no room for the flag. */
    add(counts: FlagCounts, { flagId, nowMs, variation }: EvaluatedFlag): boolean {
      const count = counts.flags?.get(flagId) ?? addFlag(counts, flagId);
      if (count === undefined) return false;
      count.evaluations += 1;
      count.evaluatedAtMs = nowMs;
      if (variation !== undefined) addVariation(counts, count, variation);
      return true;
    },
    /** Makes room for new counters. */
    reset(): void {
      counters = 0;
    },
  };
}
