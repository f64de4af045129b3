import type { Outcome } from "../benchmark.ts";
import { figureTable } from "./table.ts";

/** What came out, for the terminal and for the page alike. */
export function describeOutcome({ figures, notes, servers }: Outcome): string {
  const versions = Object.entries(servers).map(([name, version]) => `${name} ${version}`);
  const lines = [...notes, `Servers: ${versions.join(", ")}.`];
  return [figureTable(figures), "", ...lines.map((line) => `- ${line}`)].join("\n");
}
