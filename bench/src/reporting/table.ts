import { type Figure, isMet, ratioOf } from "./figure.ts";

/** Figures as a table that reads well as plain text and is Markdown at the same time. */
export function figureTable(figures: readonly Figure[]): string {
  return table([
    ["What", "Measured", "Baseline", "Ratio", "Goal", "Met"],
    ...figures.map((figure) => [...valuesOf(figure), goalText(figure), metText(figure)]),
  ]);
}

/** The same without goals, for figures that cannot tell whether they are met. */
export function figureTableWithoutGoals(figures: readonly Figure[]): string {
  return table([
    ["What", "Measured", "Baseline", "Ratio"],
    ...figures.map((figure) => valuesOf(figure)),
  ]);
}

/** Rows of cells, the first of them the heads; all but the first column to the right. */
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

function amount(value: number, unit: string): string {
  return `${number(value)} ${unit}`.trim();
}

/** Three digits that count, and no more decimals than that. */
export function number(value: number): string {
  const size = Math.abs(value);
  const decimals = size >= 100 ? 0 : size >= 10 ? 1 : 2;
  return value.toLocaleString("en-US", {
    minimumFractionDigits: decimals,
    maximumFractionDigits: decimals,
  });
}

function ratioText(figure: Figure): string {
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
