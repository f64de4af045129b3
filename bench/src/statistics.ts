import type { Bench } from "./benchmark.ts";

type Sample = Record<string, number>;
type Sides = Record<string, () => Promise<Sample>>;
type Medians<S extends Sides> = { [Side in keyof S]: Awaited<ReturnType<S[Side]>> };

/**
 * Measures several sides in turn, A B A B, and returns the median of each. A machine that becomes slower for
 * a while then affects all sides equally. A quick run has one round.
 */
export async function alternate<S extends Sides>(
  { quick, say }: Pick<Bench, "quick" | "say">,
  rounds: number,
  sides: S,
): Promise<Medians<S>> {
  say(`${Object.keys(sides).join(", ")} in turn`);
  const taken = Object.entries(sides).map(([name, measure]) => ({
    ...{ name, measure },
    samples: [] as Sample[],
  }));
  for (let round = 0; round < (quick ? 1 : rounds); round += 1)
    for (const { measure, samples } of taken) samples.push(await measure());
  return Object.fromEntries(
    taken.map(({ name, samples }) => [name, medians(samples)]),
  ) as Medians<S>;
}

function medians(samples: readonly Sample[]): Sample {
  const fields = Object.keys(samples[0] ?? {});
  return Object.fromEntries(
    fields.map((field) => [field, median(samples.map((sample) => sample[field] as number))]),
  );
}
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
