import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  type DashboardSystem,
  markCaution,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** An environment with the mark, and schedules that are pending there. */
export function describeCaution(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const url = (path: string) => `${given().gateway.url}${path}`;
  const dialog = () => page.getByRole("dialog");
  const isOn = async () => {
    const { flags } = await must(url("/api/v1/flags?key=checkout"), { key: tenant.serverKey });
    return flags[0]?.enabled;
  };
  const checkoutSwitch = (environment: string) =>
    page.getByRole("switch", { name: `checkout in ${environment}` });

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Marked" });
    const { id } = await must(url("/api/v1/flags"), {
      method: "POST",
      key: tenant.serverKey,
      body: { key: "checkout", name: "Checkout" },
    });
    await must(url(`/api/v1/flags/${id}/environments/${tenant.environmentId}/schedule`), {
      method: "POST",
      key: tenant.serverKey,
      body: { enable_at: "2099-01-31T09:00:00Z" },
    });
    page = await openDashboard(given, tenant, "/environments");
  });
  afterAll(() => page?.close());

  it("is marked on the page of the environments", async () => {
    const mark = page.getByRole("switch", { name: "Ask before changes in production" });
    await mark.press("Space");
    await page.getByRole("row", { name: /production Caution/ }).waitFor();
    await page.getByText("Changes ask first").waitFor();
    await expectNoSeriousViolations(page);
    await page.emulateMedia({ forcedColors: "active" });
    const edge = await page.getByText("Every flag has a separate state").evaluate((element) => {
      const marked = element.closest("main > div");
      return marked === null ? "" : getComputedStyle(marked).borderTopWidth;
    });
    expect(edge).toBe("4px");
    await page.emulateMedia({ forcedColors: null });
  });

  it("asks before the switch of the list changes it, and not in the other environment", async () => {
    await page.getByRole("link", { name: "Flags", exact: true }).first().click();
    await checkoutSwitch("production").press("Space");
    await dialog().getByText("Turn checkout on in production?").waitFor();
    await dialog().getByText("Everyone").waitFor();
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Escape");
    expect([await isOn(), await checkoutSwitch("production").isChecked()]).toEqual([false, false]);
    await checkoutSwitch("production").press("Space");
    await dialog().getByRole("button", { name: "Turn on" }).click();
    await page.getByText("checkout is on in production.").waitFor();
    expect(await isOn()).toBe(true);
    await page.goto(url("/flags?env=staging"));
    await checkoutSwitch("staging").press("Space");
    await page.getByText("checkout is on in staging.").waitFor();
  });

  it("shows the pending schedule in the list and on the page of the flag", async () => {
    expect(await page.getByText(/On Sat, Jan 31, 2099/).count()).toBe(0);
    await page.goto(url("/flags?env=production"));
    await page.getByRole("row", { name: /Scheduled: On Sat, Jan 31, 2099/ }).waitFor();
    await page.getByRole("link", { name: "checkout", exact: true }).click();
    await page.getByText(/Scheduled: On from Sat, Jan 31, 2099/).waitFor();
    await expectNoSeriousViolations(page);
    await page.getByRole("link", { name: "Show the schedule" }).click();
    await page.getByRole("button", { name: "Clear" }).waitFor();
  });

  it("asks before a schedule is replaced", async () => {
    await page.getByRole("button", { name: "Replace", exact: true }).click();
    const fields = ["month", "day", "year", "hour", "minute", "AM/PM"];
    for (const [index, value] of ["2", "1", "2099", "9", "00", "AM"].entries())
      await page
        .getByRole("spinbutton", { name: `${fields[index]}, Turn off at` })
        .pressSequentially(value);
    await page.getByRole("button", { name: "Replace schedule" }).click();
    await dialog().getByText("Change the schedule in production?").waitFor();
    await dialog()
      .getByText(/Off from Sun, Feb 1, 2099/)
      .waitFor();
    await dialog().getByRole("button", { name: "Replace schedule" }).click();
    await page.getByText("checkout is scheduled in production.").waitFor();
  });

  it("asks before the targeting is saved, with what changes", async () => {
    await page.getByRole("link", { name: "Targeting" }).click();
    await page.getByRole("switch", { name: "Flag in production" }).press("Space");
    await page.getByRole("button", { name: "Save changes" }).click();
    await dialog().getByText("Save in production?").waitFor();
    await dialog().getByRole("button", { name: "Cancel" }).click();
    expect(await isOn()).toBe(true);
    await page.getByRole("button", { name: "Save changes" }).click();
    await dialog().getByRole("button", { name: "Save", exact: true }).click();
    await page.getByText("checkout is saved in production.").waitFor();
    expect(await isOn()).toBe(false);
  });

  it("fits a narrow screen", async () => {
    await page.setViewportSize({ width: 360, height: 740 });
    await page.goto(url("/flags?env=production"));
    await checkoutSwitch("production").click({ trial: true });
    for (const path of ["/flags?env=production", "/environments?env=production"]) {
      await page.goto(url(path));
      await page.getByRole("switch").first().click({ trial: true });
      expect(await page.evaluate(() => document.documentElement.scrollWidth)).toBe(360);
    }
  });

  it("disappears from all open pages when another person removes it", async () => {
    await page.setViewportSize({ width: 1280, height: 740 });
    await page.getByText("Live", { exact: true }).waitFor();
    await page.getByText("Caution", { exact: true }).first().waitFor();
    await markCaution(url(""), tenant, false);
    await page.getByText("Caution", { exact: true }).first().waitFor({ state: "detached" });
  });
}
