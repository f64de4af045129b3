import { readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { renderedPage } from "../src/benchmarks-page.ts";
import { benchmarksPage } from "../src/project-root.ts";

describe("given the page about the benchmarks", () => {
  it("its figures are the ones that were measured and saved", () => {
    expect(readFileSync(benchmarksPage, "utf8")).toBe(renderedPage());
  });
});
