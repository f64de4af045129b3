import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "@jest/globals";
import { presentPages, renderedPages } from "../src/benchmarks-page.ts";
import { headlines } from "../src/headlines.ts";
import { projectRoot } from "../src/project-root.ts";
import { readResults } from "../src/results.ts";

describe("given the pages about the benchmarks", () => {
  const pages = renderedPages();

  it("their figures are the saved results", () => {
    for (const { path, text } of pages) expect(readFileSync(path, "utf8")).toBe(text);
  });

  it("there is a page for each result, and no other page", () => {
    const expected = pages.map(({ path }) => path);
    expect(expected).toEqual(expect.arrayContaining([...presentPages()]));
    expect(pages).toHaveLength(readResults().size + 2);
  });

  it.each(headlines)("$question: the figures are measured", ({ benchmark, figures }) => {
    const measured = readResults()
      .get(benchmark)
      ?.figures.map(({ what }) => what);
    expect(measured).toEqual(expect.arrayContaining([...figures]));
  });
});

const readme = readFileSync(join(projectRoot, "README.md"), "utf8");

function figureOf(benchmark: string, what: string) {
  const figure = readResults()
    .get(benchmark)
    ?.figures.find((one) => one.what === what);
  if (figure === undefined) throw new Error(`No saved figure "${what}" of ${benchmark}.`);
  return { measured: figure.measured, baseline: figure.baseline ?? Number.NaN };
}

const rounded = (value: number, digits: number) =>
  Number(value.toPrecision(digits)).toLocaleString("en");

const percentOf = ({ measured, baseline }: { measured: number; baseline: number }) =>
  Math.round((100 * measured) / baseline);

it("the figures in the README are the saved figures", () => {
  const throughGateway = figureOf("gateway", "200: requests per second through the gateway");
  const sameValues = figureOf("flags", "200: requests per second");
  const newUsers = figureOf("targeting", "100 flags, X-User-Context: requests per second");
  const peers = figureOf("peers", "100 flags, edge vs. unleash-server: requests per second");
  const median = figureOf("streams", "1,000 streams: PATCH to client, median");
  const p99 = figureOf("streams", "1,000 streams: PATCH to client, p99");
  const memory = figureOf("streams", "10,000 streams: memory per stream");

  const shown = [
    `same values for all users | ${rounded(throughGateway.measured, 3)} requests/s |`,
    `${rounded(sameValues.measured, 3)} requests/s, ${percentOf(sameValues)}% of a bare`,
    `${rounded(newUsers.measured, 3)} requests/s, ${percentOf(newUsers)}% of a bare`,
    `${rounded(peers.measured, 3)} requests/s; unleash-server: ${rounded(peers.baseline, 3)}`,
    `${rounded(median.measured, 2)} ms median, ${rounded(p99.measured, 2)} ms p99`,
    `${rounded(memory.measured, 2)} kB`,
  ];
  expect(shown.filter((text) => !readme.includes(text))).toEqual([]);
});
