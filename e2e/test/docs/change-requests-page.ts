import { readFileSync } from "node:fs";
import { expect, it } from "@jest/globals";
import { followPage } from "../../src/stories/follow-page.ts";
import type { PageSystem } from "../../src/stories/page-system.ts";

const page = readFileSync(new URL("../../../docs/change-requests.md", import.meta.url), "utf8");

/** Tests that change requests work as docs/change-requests.md describes. */
export function describeChangeRequests(given: () => PageSystem): void {
  it("docs/change-requests.md works when followed twice", async () => {
    const shell = given().openShell(await given().createTenant("Change requests"));
    expect(await followPage(shell, page)).toBeGreaterThan(7);
  });
}
