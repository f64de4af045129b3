import { readFileSync } from "node:fs";
import { compileCheck, maxVariations, TargetingRulesInput } from "@halyard/contracts";
import { splitBucketOf } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, tableOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";

const page = readFileSync(new URL("../../../docs/values.md", import.meta.url), "utf8");

/** Tests that typed flags work as docs/values.md describes. */
export function describeValues(given: () => PageSystem): void {
  it("docs/values.md works when followed twice", async () => {
    const shell = given().openShell(await given().createTenant("Values"));
    expect(await followPage(shell, page)).toBeGreaterThan(9);
  });

  describe("given docs/values.md alone", () => {
    it("shows only rules that match the schema", () => {
      const checkRules = compileCheck(TargetingRulesInput);
      const shown = blocksOf(page).filter(({ kind }) => kind === "json rules");
      expect(shown.length).toBeGreaterThan(0);
      for (const { text } of shown)
        expect(checkRules(JSON.parse(text))).toMatchObject({ ok: true });
    });

    it("names the bucket of the company that moves", () => {
      expect(page).toContain(
        `\`contoso\` has bucket ${splitBucketOf("checkout-color", "contoso")}`,
      );
    });

    it("names the limit of variations", () => {
      const limits = new Map(
        tableOf(page, "What | Limit").map(([what = "", limit]) => [what, limit] as const),
      );
      expect(limits.get("variations of a flag")).toBe(`1 to ${maxVariations}`);
    });
  });
}
