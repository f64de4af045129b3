import { type Figure, ratioOf } from "./reporting/figure.ts";

/**
 * Describes the ratios that exceed the saved ones by more than the tolerance. A ratio that has no saved
 * one, or a saved ratio that was not measured, is a problem as well.
 */
export function worseRatios(
  figures: readonly Figure[],
  { saved, tolerance }: { saved: readonly Figure[]; tolerance: number },
): string[] {
  const ratios = ratiosOf(figures);
  const accepted = ratiosOf(saved);
  const missing = [...accepted.keys()].filter((what) => !ratios.has(what));
  return [
    ...missing.map((what) => `"${what}" was not measured.`),
    ...[...ratios].flatMap(([what, ratio]) => {
      const before = accepted.get(what);
      if (before === undefined) return [`"${what}" has no accepted ratio.`];
      const bound = before * tolerance;
      // A ratio that is not a number exceeds every bound.
      if (ratio <= bound) return [];
      return [
        `"${what}" has a ratio of ${ratio.toFixed(2)}. Accepted: ${before.toFixed(2)}, at most ${bound.toFixed(2)}.`,
      ];
    }),
  ];
}

function ratiosOf(figures: readonly Figure[]): ReadonlyMap<string, number> {
  return new Map(
    figures.flatMap((figure) => {
      const ratio = ratioOf(figure);
      return ratio === undefined ? [] : [[figure.what, ratio] as const];
    }),
  );
}
