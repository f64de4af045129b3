import { type Figure, isMet, ratioOf } from "./figure.ts";

/** Returns figures as a Markdown table that is also readable as plain text. */
export function figureTable(figures: readonly Figure[]): string {
  return table([
    ["Figure", "Measured", "Baseline", "Ratio", "Goal", "Met"],
    ...figures.map((figure) => [...valuesOf(figure), goalText(figure), metText(figure)]),
  ]);
}

/** Returns a table without goals, for figures of quick runs. */
export function figureTableWithoutGoals(figures: readonly Figure[]): string {
  return table([
    ["Figure", "Measured", "Baseline", "Ratio"],
    ...figures.map((figure) => valuesOf(figure)),
  ]);
}

/**
 * Returns a Markdown table. The first row is the head; all columns except the first are right-aligned.
 */
export function table(rows: readonly (readonly string[])[]): string {
  const [heads = [], ...others] = rows;
  const widths = heads.map((_, column) =>
    Math.max(...rows.map((row) => (row[column] ?? "").length), 3),
  );
  const line = (row: readonly string[]) =>
    `| ${row.map((cell, column) => padded(cell, column, widths[column] ?? 0)).join(" | ")} |`;
  const rule = widths.map((width, column) =>
    column === 0 ? "-".repeat(width) : `${"-".repeat(width - 1)}:`,
  );
  return [line(heads), `| ${rule.join(" | ")} |`, ...others.map(line)].join("\n");
}

function valuesOf(figure: Figure): string[] {
  return [
    figure.what,
    amount(figure.measured, figure.unit),
    figure.baseline === undefined ? "" : amount(figure.baseline, figure.unit),
    ratioText(figure),
  ];
}

function padded(cell: string, column: number, width: number): string {
  return column === 0 ? cell.padEnd(width) : cell.padStart(width);
}

export function amount(value: number, unit: string): string {
  return `${number(value)} ${unit}`.trim();
}

/** Formats a number with three significant digits. */
export function number(value: number): string {
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
}

export function ratioText(figure: Figure): string {
  const ratio = ratioOf(figure);
  return ratio === undefined ? "" : ratio.toFixed(2);
}

function goalText({ goal, unit }: Figure): string {
  if (goal === undefined) return "";
  const sign = "atLeast" in goal ? "≥" : "<";
  const bound = "atLeast" in goal ? goal.atLeast : goal.below;
  return goal.of === "ratio"
    ? `ratio ${sign} ${bound.toFixed(2)}`
    : `${sign} ${bound} ${unit}`.trim();
}

function metText(figure: Figure): string {
  const met = isMet(figure);
  return met === undefined ? "" : met ? "yes" : "**no**";
}
