import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "@jest/globals";
import { projectRoot } from "../src/project-root.ts";
import { readResults } from "../src/results.ts";

const readme = readFileSync(join(projectRoot, "README.md"), "utf8");
const results = readResults();

function figureOf(benchmark: string, what: string) {
  const figure = results.get(benchmark)?.figures.find((one) => one.what === what);
  if (figure === undefined) throw new Error(`No saved figure "${what}" of ${benchmark}.`);
  return { measured: figure.measured, baseline: figure.baseline ?? Number.NaN };
}

const rounded = (value: number, digits: number) =>
  Number(value.toPrecision(digits)).toLocaleString("en");

it("the figures in the README are the saved figures", () => {
  const flags = figureOf("flags", "200: requests per second");
  const percent = Math.round((100 * flags.measured) / flags.baseline);
  const peers = figureOf("peers", "100 flags, edge vs. unleash-server: requests per second");
  const median = figureOf("streams", "1,000 streams: 2xx to client, median");
  const p99 = figureOf("streams", "1,000 streams: 2xx to client, p99");
  const memory = figureOf("streams", "10,000 streams: memory per stream");

  const shown = [
    `${rounded(flags.measured, 3)} requests/s, ${percent} % of a bare`,
    `${rounded(peers.measured, 3)} requests/s; unleash-server: ${rounded(peers.baseline, 3)}`,
    `${rounded(median.measured, 2)} ms median, ${rounded(p99.measured, 2)} ms p99`,
    `${rounded(memory.measured, 2)} kB`,
  ];
  expect(shown.filter((text) => !readme.includes(text))).toEqual([]);
});
