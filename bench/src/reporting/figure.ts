/** A measured number, what it stands beside and what it ought to be. */
export type Figure = {
  what: string;
  unit: string;
  measured: number;
  /** The same of the baseline, in the same unit and the same run. */
  baseline?: number;
  goal?: Goal;
};

export type Goal = { of: "measured" | "ratio" } & ({ atLeast: number } | { below: number });

/** Measured by baseline. */
export function ratioOf(figure: Figure): number | undefined {
  return figure.baseline === undefined ? undefined : figure.measured / figure.baseline;
}

/** Undefined for a figure without a goal. */
export function isMet(figure: Figure): boolean | undefined {
  const { goal } = figure;
  if (goal === undefined) return undefined;
  const value = goal.of === "ratio" ? ratioOf(figure) : figure.measured;
  if (value === undefined) return false;
  return "atLeast" in goal ? value >= goal.atLeast : value < goal.below;
}
