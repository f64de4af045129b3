/** A measured value, its baseline and its goal. */
export type Figure = {
  what: string;
  unit: string;
  measured: number;
  /** The value of the baseline, in the same unit and from the same run. */
  baseline?: number;
  goal?: Goal;
};

export type Goal = { of: "measured" | "ratio" } & ({ atLeast: number } | { below: number });

/** Returns the measured value divided by the baseline. */
export function ratioOf(figure: Figure): number | undefined {
  return figure.baseline === undefined ? undefined : figure.measured / figure.baseline;
}

/** Returns whether the goal is met; undefined without a goal. */
export function isMet(figure: Figure): boolean | undefined {
  const { goal } = figure;
  if (goal === undefined) return undefined;
  const value = goal.of === "ratio" ? ratioOf(figure) : figure.measured;
  if (value === undefined) return false;
  return "atLeast" in goal ? value >= goal.atLeast : value < goal.below;
}
