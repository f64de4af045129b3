/** Returns a quantile; `share` 0.5 is the median. */
export function quantile(values: ArrayLike<number>, share: number): number {
  if (values.length === 0) return Number.NaN;
  const sorted = Float64Array.from(values).sort();
  const index = Math.min(sorted.length - 1, Math.max(0, Math.ceil(share * sorted.length) - 1));
  return sorted[index] as number;
}

export function median(values: ArrayLike<number>): number {
  return quantile(values, 0.5);
}
