import { median } from "./statistics.ts";

type Sample = Record<string, number>;
type Sides = Record<string, () => Promise<Sample>>;
type Medians<S extends Sides> = { [Side in keyof S]: Awaited<ReturnType<S[Side]>> };

/**
 * Measures several sides in turn, A B A B, and returns the median of each. A machine that becomes slower for
 * a while then affects all sides equally.
 */
export async function alternate<S extends Sides>(rounds: number, sides: S): Promise<Medians<S>> {
  const taken = Object.entries(sides).map(([name, measure]) => ({
    name,
    measure,
    samples: [] as Sample[],
  }));
  for (let round = 0; round < rounds; round += 1)
    for (const side of taken) side.samples.push(await side.measure());
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
