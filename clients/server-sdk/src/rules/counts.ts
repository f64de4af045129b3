/** Evaluations of a flag. */
export type Counts = {
  /** Evaluations of a boolean flag with the value true. */
  on: number;
  /** Evaluations of a boolean flag with the value false, or of a typed flag without a variation. */
  off: number;
  /** Evaluations of a typed flag by key of the variation. */
  variations?: ReadonlyMap<string, number>;
};

export function addCounts(one: Counts, other: Counts | undefined): Counts {
  if (other === undefined) return one;
  const sum: Counts = { on: one.on + other.on, off: one.off + other.off };
  if (one.variations === undefined && other.variations === undefined) return sum;
  const variations = new Map(one.variations);
  for (const [key, count] of other.variations ?? [])
    variations.set(key, count + (variations.get(key) ?? 0));
  return { ...sum, variations };
}
