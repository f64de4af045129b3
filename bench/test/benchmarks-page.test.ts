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

it("the figures in the README are the saved figures", () => {
  const sameValues = figureOf("gateway", "200: requests per second through the gateway");
  const path = figureOf(
    "gateway",
    "X-User-Context vs. Unleash Edge behind HAProxy: requests per second",
  );
  const [peers100, peers1000] = ["100", "1,000"].map((count) =>
    figureOf("peers", `${count} flags, edge vs. unleash-server: requests per second`),
  );
  const median = figureOf("streams", "1,000 streams: PATCH to client, median");
  const p99 = figureOf("streams", "1,000 streams: PATCH to client, p99");
  const memory = figureOf("streams", "10,000 streams: memory per stream");

  const shown = [
    `${rounded(path.measured, 3)} requests/s; Unleash Edge behind HAProxy: ${rounded(path.baseline, 3)} |`,
    `${rounded(sameValues.measured, 3)} requests/s; the edge alone, in the same run: ${rounded(sameValues.baseline, 3)} |`,
    ...[peers100, peers1000].map(
      (each) =>
        `${rounded(each?.measured ?? Number.NaN, 3)} requests/s; unleash-server: ${rounded(each?.baseline ?? Number.NaN, 3)} |`,
    ),
    `${rounded(median.measured, 2)} ms median, ${rounded(p99.measured, 2)} ms p99`,
    `${rounded(memory.measured, 2)} kB`,
  ];
  expect(shown.filter((text) => !readme.includes(text))).toEqual([]);
});

it("the figures of other servers are the saved figures", () => {
  const page = readFileSync(join(projectRoot, "docs", "benchmarks.md"), "utf8");
  const typed = (peer: string, what: string) =>
    figureOf("peers", `100 flags, a third typed, OFREP vs. ${peer}: ${what}`);
  const row = (perSecond: number, cpu: number) =>
    `| ${Math.round(perSecond).toLocaleString("en")} | ${Math.round(cpu).toLocaleString("en")} µs |`;
  const peers = ["Unleash Edge", "GO Feature Flag", "flagd-core"].map((peer) => ({
    perSecond: typed(peer, "requests per second"),
    cpu: typed(peer, "CPU per request"),
  }));
  const both = figureOf(
    "gateway",
    "X-User-Context vs. Unleash Edge behind HAProxy: CPU of both processes",
  );

  const shown = [
    row(peers[0]?.perSecond.measured ?? Number.NaN, peers[0]?.cpu.measured ?? Number.NaN),
    ...peers.map(({ perSecond, cpu }) => row(perSecond.baseline, cpu.baseline)),
    `need ${Math.round(both.measured)} µs of CPU`,
    `with Unleash Edge ${Math.round(both.baseline)} µs`,
  ];
  expect(shown.filter((text) => !page.includes(text))).toEqual([]);
});

it("the figures for sizing are the saved figures", () => {
  const page = readFileSync(join(projectRoot, "docs", "without-containers.md"), "utf8");
  const gateway = figureOf("gateway", "200: requests per second through the gateway").measured;
  const [flags100, flags1000] = ["100", "1,000"].map(
    (count) =>
      figureOf("targeting", `${count} flags, X-User-Context: requests per second`).measured,
  );
  const shareOf = (perSecond = 0) => `${Math.round(100_000 / perSecond)}% of a core`;
  const whole = (value = 0) => rounded(value, 3);
  const streams = figureOf("gateway", "6000 streams: memory of the gateway for each").measured;
  const changes = figureOf("changes", "2 edges: changes per second").measured;
  const deliveries = figureOf("webhooks", "deliveries per second vs. bare got").measured;

  const shown = [
    `${shareOf(gateway)}: one core serves ${whole(gateway)} |`,
    `${shareOf(flags100)} with 100 flags (${whole(flags100)}), ${shareOf(flags1000).replace(" of a core", "")} with 1,000 (${whole(flags1000)}) |`,
    `at ${rounded(streams, 2)} kB for each`,
    `| ${whole(changes)} a second with 2 edges |`,
    `| ${whole(deliveries)} deliveries a second |`,
  ];
  expect(shown.filter((text) => !page.includes(text))).toEqual([]);
});
