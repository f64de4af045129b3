import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

const requests = 7;

/** The usage page, after real requests of an application. */
export function describeUsage(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  const url = (path: string) => `${given().gateway.url}/api/v1/${path}`;

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Usage", plan: "free" });
    for (const key of ["new-checkout", "never-asked"])
      await must(url("flags"), {
        method: "POST",
        key: tenant.serverKey,
        body: { key, name: key },
      });
    const evaluate = () => call(url("sdk/evaluate?key=new-checkout"), { key: tenant.clientKey });
    await eventually(async () => (await evaluate()).status === 200);
    for (let sent = 1; sent < requests; sent++) await evaluate();
    await eventually(async () => {
      const { flags } = await must(url("usage/flags"), { key: tenant.serverKey });
      return flags[0]?.evaluations >= requests;
    });
    page = await openDashboard(given, tenant, "/usage");
    errors = collectConsoleErrors(page);
  });
  afterAll(() => page?.close());

  it("shows the plan, and the requests against its limit", async () => {
    const { requests: counted } = await must(url("usage"), { key: tenant.serverKey });
    expect(counted.used).toBeGreaterThanOrEqual(requests);
    const meter = page.getByRole("meter", { name: "Requests this month" });
    await meter.waitFor();
    expect(await meter.getAttribute("aria-valuetext")).toBe(`${counted.used} of 500,000`);
    await page.getByRole("heading", { name: "Plan free" }).waitFor();
    const rules = page.getByRole("meter", { name: "Rules of all flags" });
    expect(await rules.getAttribute("aria-valuetext")).toBe("0 bytes of 8 MiB");
  });

  it("shows today's requests in the chart and in a table", async () => {
    const { days } = await must(url("usage/days"), { key: tenant.serverKey });
    const chart = page.getByRole("img", { name: /^Requests by day in/ });
    const bars = chart.locator('[data-mark="requests"]');
    const today = Number(days.at(-1).date.slice(8)) - 1;
    const heights = await bars.evaluateAll((all) => all.map((bar) => bar.clientHeight));
    expect(Math.max(...heights)).toBe(heights[today]);
    await bars.nth(today).hover();
    await chart
      .getByText(/^\d+ requests$/)
      .and(page.locator(":visible"))
      .waitFor();
    await page.getByText("Requests are counted since").waitFor();
    await page.getByText("Show the numbers as a table").click();
    const row = page.getByRole("region", { name: "Requests by day in" }).getByRole("row").nth(1);
    expect(await row.getByRole("cell").nth(1).innerText()).toBe(String(days.at(-1).requests));
  });

  it("lists the flags by traffic, in the chosen order", async () => {
    const first = page.getByRole("region", { name: "Flags by traffic" }).getByRole("row").nth(1);
    await first.getByRole("link", { name: "new-checkout" }).waitFor();
    await page.getByRole("button", { name: "Order" }).press("Enter");
    await page.getByRole("option", { name: "Least evaluated first" }).press("Enter");
    await first.getByRole("link", { name: "never-asked" }).waitFor();
    expect(page.url()).toContain("order=least");
  });

  it("has no serious finding of axe, and writes no error to the console", async () => {
    await expectNoSeriousViolations(page);
    expect(errors).toEqual([]);
  });
}
