import type { Outcome } from "./benchmark.ts";

export type Figure = {
  what: string;
  unit: string;
  measured: number;
  /** The value of the baseline, in the same unit and from the same run. */
  baseline?: number;
  goal?: Goal;
};

export type Goal = { of: "measured" | "ratio" } & ({ atLeast: number } | { below: number });
export const below = (bound: number): Goal => ({ of: "measured", below: bound });
export const atLeast = (bound: number): Goal => ({ of: "measured", atLeast: bound });
export const ratioBelow = (bound: number): Goal => ({ of: "ratio", below: bound });
export const ratioAtLeast = (bound: number): Goal => ({ of: "ratio", atLeast: bound });

/** Returns the measured value divided by the baseline. */
export const ratioOf = ({ measured, baseline }: Figure): number | undefined =>
  baseline === undefined ? undefined : measured / baseline;

/** Returns whether the goal is met; undefined without a goal. */
export function isMet(figure: Figure): boolean | undefined {
  const { goal } = figure;
  if (goal === undefined) return undefined;
  const value = goal.of === "ratio" ? ratioOf(figure) : figure.measured;
  if (value === undefined) return false;
  return "atLeast" in goal ? value >= goal.atLeast : value < goal.below;
}

/** Returns an outcome as Markdown, for the terminal and the pages. A quick run has no goals. */
export function describeOutcome({ figures, notes, servers }: Outcome, quick = false): string {
  const warning = "These figures mean nothing: a quick run is too short to measure.";
  const versions = Object.entries(servers).map(([name, version]) => `${name} ${version}`);
  const lines = [...notes, `Versions: ${versions.join(", ")}.`].map((line) => `- ${line}`);
  return [...(quick ? [warning, ""] : []), figureTable(figures, quick), "", ...lines].join("\n");
}

/** Returns figures as a Markdown table that is also readable as plain text. */
export function figureTable(figures: readonly Figure[], quick = false): string {
  const columns = quick ? 4 : 6;
  const heads = ["Figure", "Measured", "Baseline", "Ratio", "Goal", "Met"].slice(0, columns);
  const rows = [heads, ...figures.map((figure) => cellsOf(figure).slice(0, columns))];
  const widths = heads.map((_, column) => Math.max(...rows.map((row) => row[column]?.length ?? 0)));
  const padded = (cell: string, column: number) =>
    column === 0 ? cell.padEnd(widths[column] ?? 0) : cell.padStart(widths[column] ?? 0);
  const line = (row: readonly string[]) => `| ${row.map(padded).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [heads, rule, ...rows.slice(1)].map(line).join("\n");
}

function cellsOf(figure: Figure): string[] {
  const { what, unit, measured, baseline } = figure;
  const compared = baseline === undefined ? "" : amount(baseline, unit);
  return [what, amount(measured, unit), compared, ratioText(figure), ...goalCells(figure)];
}

function goalCells(figure: Figure): string[] {
  const { goal, unit } = figure;
  if (goal === undefined) return ["", ""];
  const [sign, bound] = "atLeast" in goal ? ["≥", goal.atLeast] : ["<", goal.below];
  const text =
    goal.of === "ratio" ? `ratio ${sign} ${bound.toFixed(2)}` : `${sign} ${bound} ${unit}`;
  return [text.trim(), isMet(figure) ? "yes" : "**no**"];
}

export const amount = (value: number, unit: string) => `${number(value)} ${unit}`.trim();

/** Formats a number with three significant digits. */
export function number(value: number): string {
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  const options = { minimumFractionDigits: decimals, maximumFractionDigits: decimals };
  return value.toLocaleString("en-US", options);
}

/** Formats a number of things, such as flags. */
export const count = (things: number) => things.toLocaleString("en-US");
export const percent = (share: number) => `${Math.round(share * 100)} %`;
export const ratioText = (figure: Figure) => ratioOf(figure)?.toFixed(2) ?? "";
