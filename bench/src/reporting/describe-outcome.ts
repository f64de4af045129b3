import type { Outcome } from "../benchmark.ts";
import { figureTable, figureTableWithoutGoals } from "./table.ts";

/** Returns an outcome as Markdown, for the terminal and the pages. */
export function describeOutcome(outcome: Outcome): string {
  return [figureTable(outcome.figures), "", ...linesOf(outcome)].join("\n");
}

/** Returns the outcome of a quick run, whose figures mean nothing. */
export function describeQuickOutcome(outcome: Outcome): string {
  const warning = "These figures mean nothing: a quick run is too short to measure.";
  return [warning, "", figureTableWithoutGoals(outcome.figures), "", ...linesOf(outcome)].join(
    "\n",
  );
}

function linesOf({ notes, servers }: Outcome): string[] {
  const versions = Object.entries(servers).map(([name, version]) => `${name} ${version}`);
  return [...notes, `Versions: ${versions.join(", ")}.`].map((line) => `- ${line}`);
}
