import { readFileSync } from "node:fs";
import { compileCheck, TargetingRules } from "@halyard/contracts";
import { bucketOf, findRulesProblem, operators } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { blocksOf, tableOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";

/** Tests that targeting works as docs/targeting.md describes. */
const page = readFileSync(new URL("../../../docs/targeting.md", import.meta.url), "utf8");

export function describeTargeting(given: () => PageSystem): void {
  it("docs/targeting.md works when followed twice", async () => {
    const shell = given().openShell(await given().createTenant("Page"));
    expect(await followPage(shell, page)).toBeGreaterThan(7);
  });

  describe("given docs/targeting.md alone", () => {
    const checkRules = compileCheck(TargetingRules);

    it("shows only valid rules", () => {
      const shown = blocksOf(page).filter(({ kind }) => kind === "json rules");
      expect(shown.length).toBeGreaterThan(1);
      for (const { text } of shown) {
        const rules = checkRules(JSON.parse(text));
        expect(rules).toMatchObject({ ok: true });
        if (rules.ok) expect(findRulesProblem(rules.value)).toBeUndefined();
      }
    });

    it("shows the computed buckets", () => {
      const rows = tableOf(page, "Flag key | User id | Bucket");
      expect(rows.length).toBeGreaterThan(3);
      for (const [flagKey = "", userId = "", bucket] of rows)
        expect(`${flagKey} ${userId} ${bucketOf(flagKey, userId)}`).toBe(
          `${flagKey} ${userId} ${bucket}`,
        );
    });

    it("lists every operator with its category", () => {
      const rows = tableOf(page, "Operator | Category");
      expect(rows.map(([name, category]) => `${name} ${category}`)).toEqual(
        operators.map(({ name, category }) => `\`${name}\` ${category}`),
      );
    });
  });
}
