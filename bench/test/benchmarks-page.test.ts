import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { presentPages, renderedPages } from "../src/benchmarks-page.ts";
import { headlines } from "../src/headlines.ts";
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
