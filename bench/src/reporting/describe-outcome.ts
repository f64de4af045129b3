import type { Outcome } from "../benchmark.ts";
import { figureTable, figureTableWithoutGoals } from "./table.ts";

/** What came out, for the terminal and for the page alike. */
export function describeOutcome(outcome: Outcome): string {
  return [figureTable(outcome.figures), "", ...linesOf(outcome)].join("\n");
}

/** What came out of a run that only shows that the benchmark works. */
export function describeQuickOutcome(outcome: Outcome): string {
  const warning = "These figures mean nothing: a quick run is too short to measure anything.";
  return [warning, "", figureTableWithoutGoals(outcome.figures), "", ...linesOf(outcome)].join(
    "\n",
  );
}

function linesOf({ notes, servers, listings = [] }: Outcome): string[] {
  const versions = Object.entries(servers).map(([name, version]) => `${name} ${version}`);
  return [
    ...[...notes, `Versions: ${versions.join(", ")}.`].map((line) => `- ${line}`),
    ...listings.flatMap(({ title, text }) => ["", title, "", "```text", text, "```"]),
  ];
}
