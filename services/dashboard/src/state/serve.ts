import type { Serve } from "./flag-state.ts";

/** Texts and figures about the variations that a typed flag serves. */

/** Number of buckets. A percentage is a hundredth of them. */
export const buckets = 10_000;

/** Names the variation of the users for whom a typed flag is off. Null is the default of the application. */
export const offText = (off: string | null | undefined): string =>
  off ?? "the application's default";

/** Variations that a short text names. */
const namedVariations = 4;

/** Says in a few words what users get: "blue", or "blue 60 %, red 40 %". */
export function serveText(serve: Serve): string {
  if ("variation" in serve) return serve.variation;
  const shares = serve.split.filter(({ weight }) => weight > 0);
  const texts = shares.map(({ variation, weight }) => `${variation} ${weight} %`);
  const more = texts.length - namedVariations;
  if (more <= 1) return texts.join(", ");
  return [...texts.slice(0, namedVariations), `${more} more`].join(", ");
}

/**
 * Describes the variations of a group of users: "blue for users in Germany", "blue for 60 %, red for 40 % of users in Germany".
 * `percentage` is the share of them for whom the flag is on. `by` is what follows percentages: ", by company".
 */
export function servedText(
  serve: Serve,
  { who, percentage, by }: { who: string; percentage: number; by: string },
): string {
  const shares = weightsOf(serve)
    .filter(([, weight]) => weight > 0)
    .map(([variation, weight]) => ({ variation, part: Math.round(weight * percentage) / 100 }));
  const [first, ...others] = shares;
  if (first !== undefined && others.length === 0 && first.part === 100)
    return `${first.variation} for ${who}`;
  return `${shares.map(({ variation, part }) => `${variation} for ${part} %`).join(", ")} of ${who}${by}`;
}

/** Returns the percentage of users that each variation gets. */
const weightsOf = (serve: Serve): [variation: string, weight: number][] =>
  "variation" in serve
    ? [[serve.variation, 100]]
    : serve.split.map(({ variation, weight }) => [variation, weight]);

/** Returns the percentage of users who get another variation: half the sum of the absolute differences of the weights. */
export function movedPercentage(before: Serve, after: Serve): number {
  const former = new Map(weightsOf(before));
  const next = new Map(weightsOf(after));
  const variations = [...new Set([...former.keys(), ...next.keys()])];
  const sum = variations.reduce(
    (total, key) => total + Math.abs((next.get(key) ?? 0) - (former.get(key) ?? 0)),
    0,
  );
  return Math.round(sum * 50) / 100;
}

/** Says how many users get another variation, or undefined for none. */
export function movedText(before: Serve, after: Serve): string | undefined {
  const moved = movedPercentage(before, after);
  return moved > 0 ? `${moved} % of these users get another variation when you save.` : undefined;
}

/** Returns what is served without ranges of buckets. A request without them moves the fewest users. */
export const withoutRanges = (serve: Serve): Serve =>
  "variation" in serve
    ? serve
    : { split: serve.split.map(({ variation, weight }) => ({ variation, weight })) };

/** Returns whether two splits with the same weights give the variations to other users. Unknown ranges do not differ. */
export function hasOtherUsers(before: Serve, after: Serve): boolean {
  if ("variation" in before || "variation" in after) return false;
  const rangesOf = ({ split }: { split: { variation: string; ranges?: number[][] }[] }) =>
    new Map(split.map(({ variation, ranges }) => [variation, ranges]));
  const former = rangesOf(before);
  return [...rangesOf(after)].some(([variation, ranges]) => {
    const earlier = former.get(variation);
    return (
      ranges !== undefined &&
      earlier !== undefined &&
      JSON.stringify(ranges) !== JSON.stringify(earlier)
    );
  });
}
