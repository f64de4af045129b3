import { readFileSync } from "node:fs";
import {
  maxAlternatives,
  maxAudiencesOfProject,
  maxConditionsOfAlternative,
  maxListEntries,
  maxProjectListEntries,
} from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import { tableOf } from "../../src/stories/page-blocks.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";

const page = readFileSync(new URL("../../../docs/audiences.md", import.meta.url), "utf8");

/** Tests that audiences work as docs/audiences.md describes. */
export function describeAudiences(given: () => PageSystem): void {
  it("docs/audiences.md works when followed twice", async () => {
    const shell = given().openShell(await given().createTenant("Audiences"));
    expect(await followPage(shell, page)).toBeGreaterThan(9);
  });

  describe("given docs/audiences.md alone", () => {
    it("names the limits", () => {
      const limits = new Map(
        tableOf(page, "What | Limit").map(([what = "", limit]) => [what, limit] as const),
      );
      const number = (value: number) => value.toLocaleString("en-US");
      expect(limits.get("audiences of a project")).toBe(number(maxAudiencesOfProject));
      expect(limits.get("alternatives of an audience")).toBe(
        `${maxAlternatives}, each with 1 to ${maxConditionsOfAlternative} conditions`,
      );
      expect(limits.get("entries of a list")).toContain(number(maxListEntries));
      expect(limits.get("entries of all lists of a project")).toBe(number(maxProjectListEntries));
    });
  });
}
