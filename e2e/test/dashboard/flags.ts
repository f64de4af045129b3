import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** The first page: searching, creating and switching flags. */
export function describeFlags(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  const flagsUrl = () => `${given().gateway.url}/api/v1/flags`;
  const enabled = async (key: string) => {
    const { flags } = await must(`${flagsUrl()}?key=${key}`, { key: tenant.serverKey });
    return flags[0]?.enabled;
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Flags" });
    page = await openDashboard(given, tenant);
    errors = collectConsoleErrors(page);
  });
  afterAll(() => page?.close());

  it("creates a flag, and suggests its key", async () => {
    await page.getByRole("button", { name: "Create the first flag" }).click();
    await page.getByLabel("Name").fill("New checkout");
    expect(await page.getByRole("textbox", { name: "Key" }).inputValue()).toBe("new-checkout");
    await page.getByRole("button", { name: "Create flag" }).last().click();
    await page.getByRole("heading", { name: "New checkout" }).waitFor();
    expect(await enabled("new-checkout")).toBe(false);
  });

  it("turns a flag on with the keyboard, and undoes it", async () => {
    await page.getByRole("link", { name: "Flags", exact: true }).first().click();
    const flagSwitch = page.getByRole("switch", { name: "new-checkout in production" });
    await flagSwitch.focus();
    await page.keyboard.press("Space");
    await page.getByText("new-checkout is on in production.").waitFor();
    expect(await enabled("new-checkout")).toBe(true);
    await page.getByRole("button", { name: "Undo" }).click();
    await page.getByText("new-checkout is back to its state before").waitFor();
    expect(await enabled("new-checkout")).toBe(false);
    await eventually(async () => !(await flagSwitch.isChecked()));
  });

  it("isolates a name from the text beside it", async () => {
    const name = page.getByText("New checkout", { exact: true }).first();
    expect(await name.evaluate((element) => getComputedStyle(element).unicodeBidi)).toBe("isolate");
  });

  it("keeps a switch that was pressed while the list was being read", async () => {
    const lists = `${flagsUrl()}?include=environments`;
    let release: () => void = () => undefined;
    const held = new Promise<void>((resolve) => {
      release = resolve;
    });
    await page.route(lists, async (route) => {
      const response = await route.fetch();
      await held;
      // The page may have cancelled the request.
      await route.fulfill({ response }).catch(() => undefined);
    });
    const reading = page.waitForRequest(lists);
    await page.evaluate(() => {
      const later = Date.now() + 3_600_000;
      Date.now = () => later;
      window.dispatchEvent(new Event("visibilitychange"));
    });
    await reading;
    await page.getByRole("switch", { name: "new-checkout in production" }).press("Space");
    await page.getByText("new-checkout is on in production.").first().waitFor();
    release();
    await page.unroute(lists);
    await eventually(() =>
      page.getByRole("switch", { name: "new-checkout in production" }).isChecked(),
    );
    expect(await enabled("new-checkout")).toBe(true);
  });

  it("filters by text, type and state, and keeps the filters in the address", async () => {
    for (const key of ["search-v2", "stop-payments"])
      await must(flagsUrl(), {
        method: "POST",
        key: tenant.serverKey,
        body: { key, name: key, type: key === "stop-payments" ? "kill_switch" : "release" },
      });
    await page.getByRole("link", { name: "stop-payments" }).waitFor();
    await page.getByRole("searchbox").fill("search");
    await page.getByText("1 of 3 flags").first().waitFor();
    // The address follows when typing pauses.
    await page.waitForURL(/q=search/);
    await page.reload();
    await page.getByRole("link", { name: "search-v2" }).waitFor();
    expect(await page.getByRole("link", { name: "stop-payments" }).count()).toBe(0);
    expect(await page.getByRole("searchbox").inputValue()).toBe("search");
  });

  it("loads less than 250 kB of compressed code before the list is shown", async () => {
    const fresh = await openDashboard(given, tenant);
    await fresh.getByRole("switch").first().waitFor();
    const bytes = await fresh.evaluate(() =>
      (performance.getEntriesByType("resource") as PerformanceResourceTiming[])
        .filter(({ name }) => name.includes("/assets/"))
        .reduce((sum, { encodedBodySize }) => sum + encodedBodySize, 0),
    );
    expect(bytes).toBeGreaterThan(100_000);
    expect(bytes).toBeLessThan(250_000);
    await fresh.close();
  });

  it("has no serious finding of axe, and writes no error to the console", async () => {
    await expectNoSeriousViolations(page);
    expect(errors).toEqual([]);
  });
}
