import { buckets } from "../state/serve.ts";
import type { DraftServe, DraftShare } from "./draft.ts";

/** Edits of splits. The weights always add up to 100. They are computed in hundredths, because these are exact. */

type Split = readonly DraftShare[];

const hundredths = (weight: number): number => Math.round(weight * 100);

/**
 * Returns a split with another weight of one variation. The others keep their proportions in the rest. Without others,
 * the weight stays 100.
 */
export function withWeight(split: Split, variation: string, wanted: number): DraftShare[] {
  const weight = split.length === 1 ? 100 : wanted;
  const others = split.filter((share) => share.variation !== variation);
  const sizes = divided(
    buckets - hundredths(weight),
    others.map((share) => hundredths(share.weight)),
  );
  return split.map((share) => ({
    variation: share.variation,
    weight: share.variation === variation ? weight : (sizes[others.indexOf(share)] ?? 0) / 100,
  }));
}

/** Returns a split without a variation. The others get its share, in their proportions. */
export const withoutVariation = (split: Split, variation: string): DraftShare[] =>
  withWeight(split, variation, 0).filter((share) => share.variation !== variation);

export const withEqualWeights = (split: Split): DraftShare[] => {
  const sizes = divided(
    buckets,
    split.map(() => 1),
  );
  return split.map(({ variation }, at) => ({ variation, weight: (sizes[at] ?? 0) / 100 }));
};

/** Divides a number in proportions. What rounding leaves goes to the first parts. Without proportions, all goes to the first. */
function divided(total: number, proportions: readonly number[]): number[] {
  const sum = proportions.reduce((all, each) => all + each, 0);
  const parts = proportions.map((each) => (sum === 0 ? 0 : Math.floor((total * each) / sum)));
  let left = total - parts.reduce((all, each) => all + each, 0);
  return parts.map((part, at) => {
    if (sum === 0) return at === 0 ? total : 0;
    if (left === 0 || proportions[at] === 0) return part;
    left -= 1;
    return part + 1;
  });
}

/** Makes a split of what is served, without moving a user: the other variation begins at 0. */
export function splitOf(serve: DraftServe, variations: readonly string[]): DraftShare[] {
  if ("split" in serve) return [...serve.split];
  const other = variations.find((key) => key !== serve.variation);
  return [
    { variation: serve.variation, weight: 100 },
    ...(other === undefined ? [] : [{ variation: other, weight: 0 }]),
  ];
}

/** Returns whether a field of a split has a text that is no percentage. */
export const hasInvalidWeight = (serve: DraftServe | undefined): boolean =>
  serve !== undefined &&
  "split" in serve &&
  serve.split.some(({ invalidWeight }) => invalidWeight !== undefined);
