import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant } from "../../src/system/tenancy.ts";

/** An open page after an upgrade, which replaces the files of the other pages. */
export function describeUpgrade(given: () => DashboardSystem): void {
  let page: Page;

  beforeAll(async () => {
    const tenant = await createTenant(given().gateway.url, { name: "Upgraded" });
    page = await openDashboard(given, tenant, "/flags");
  });
  afterAll(() => page?.close());

  it("offers to reload a page whose files are gone", async () => {
    const styles = /\/assets\/compare-page-.*\.css$/;
    await page.getByText("Web has no flags yet").waitFor();
    await page.route(styles, (route) => route.fulfill({ status: 404 }));
    await page.getByRole("link", { name: "Compare" }).click();
    await page.getByRole("heading", { name: "Reload to continue" }).waitFor();
    expect(await page.getByText("Unable to preload CSS").count()).toBe(0);
    await page.unroute(styles);
    await page.getByRole("button", { name: "Reload", exact: true }).click();
    await page.getByRole("heading", { name: "Compare environments" }).waitFor();
  });
}
