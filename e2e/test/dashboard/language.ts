import { type Browser, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must } from "../../src/system/tenancy.ts";

/** The dashboard in a browser of another language. Its texts are English. */
export function describeLanguage(given: () => DashboardSystem): void {
  let browser: Browser;
  let page: Page;
  const open = (path: string) => page.goto(`${given().gateway.url}${path}`);

  beforeAll(async () => {
    const tenant = await createTenant(given().gateway.url, { name: "Language" });
    const body = { key: "checkout", name: "Checkout" };
    const flags = `${given().gateway.url}/api/v1/flags`;
    await must(flags, { method: "POST", key: tenant.serverKey, body });
    browser = await startChromium({ locale: "de-DE" });
    page = await openDashboard(() => ({ ...given(), browser }), tenant, "/history");
  });
  afterAll(() => browser?.close());

  it("has dates with English words", async () => {
    const today = new Intl.DateTimeFormat("en-GB", { dateStyle: "full" }).format(new Date());
    await page.getByRole("heading", { name: today }).waitFor();
  });

  it("has fields with English names", async () => {
    await open("/flags/checkout/schedule");
    await page.getByRole("spinbutton", { name: "month, Turn on at" }).waitFor();
    expect(await page.locator("html").getAttribute("lang")).toBe("en");
  });
}
