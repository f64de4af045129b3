import { readFileSync } from "node:fs";
import { compileCheck, maxRequirements, TargetingRulesInput } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, tableOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";

const page = readFileSync(new URL("../../../docs/requirements.md", import.meta.url), "utf8");

/** Tests that flags require others as docs/requirements.md describes. */
export function describeRequirements(given: () => PageSystem): void {
  it("docs/requirements.md works when followed twice", async () => {
    const shell = given().openShell(await given().createTenant("Requirements"));
    expect(await followPage(shell, page)).toBeGreaterThan(4);
  });

  describe("given docs/requirements.md alone", () => {
    it("shows only rules that match the schema", () => {
      const checkRules = compileCheck(TargetingRulesInput);
      const shown = blocksOf(page).filter(({ kind }) => kind === "json rules");
      expect(shown.length).toBeGreaterThan(0);
      for (const { text } of shown)
        expect(checkRules(JSON.parse(text))).toMatchObject({ ok: true });
    });

    it("names the limit of requirements", () => {
      const limits = new Map(
        tableOf(page, "What | Limit").map(([what = "", limit]) => [what, limit] as const),
      );
      expect(limits.get("`requires` of a flag")).toBe(`${maxRequirements}`);
    });
  });
}
