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

/** Connecting the first application: its code, its key, and its first request. */
export function describeConnect(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  const url = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const chooseApplication = async (name: string) => {
    await page.getByRole("button", { name: "Application" }).press("Enter");
    await page.getByRole("option", { name }).press("Enter");
  };
  const createKey = async (kind: string, name: string) => {
    await button(`Create a ${kind} key`).click();
    await page.getByRole("textbox", { name: "Name" }).fill(name);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `The new key ${name}` }).waitFor();
    const key = await page.getByRole("dialog").locator("pre").innerText();
    await page.getByRole("checkbox", { name: "I have copied the key" }).press("Space");
    await page.getByRole("dialog").getByText("Close", { exact: true }).click();
    await page.getByText(`Waiting for the first request with ${name}`).waitFor();
    return key;
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Connect" });
    page = await openDashboard(given, tenant, "/flags?env=staging");
    errors = collectConsoleErrors(page);
  });
  afterAll(() => page?.close());

  it("is offered where the project has no flags, and where the keys are", async () => {
    await page.getByRole("link", { name: "connect your first application" }).click();
    await page.getByRole("heading", { name: "Connect an application" }).waitFor();
    const body = { key: "gift-wrap", name: "Gift wrap" };
    await must(url("flags"), { method: "POST", key: tenant.serverKey, body });
    await page.getByRole("link", { name: "API keys" }).click();
    await page.getByRole("link", { name: "Connect an application" }).click();
    await page.getByText(`isEnabled("gift-wrap"`).waitFor();
    await page.getByText("reads the flags of staging").waitFor();
  });

  it("says when the first request of a browser arrives, then stops asking", async () => {
    await chooseApplication("Any language: HTTP");
    await page
      .getByText(`curl "${given().gateway.url}/api/v1/sdk/evaluate?key=gift-wrap"`)
      .waitFor();
    const key = await createKey("client", "Shop window");
    expect(key).toMatch(/^hc_/);
    await expectNoSeriousViolations(page);
    const evaluate = () => call(url("sdk/evaluate?key=gift-wrap"), { key });
    await eventually(async () => (await evaluate()).status === 200);
    await page.getByText("The first request with Shop window arrived.").waitFor();
    const polled = page.waitForRequest(/\/keys$/, { timeout: 4_000 });
    await expect(polled).rejects.toThrow("Timeout");
  });

  it("offers a reader key for a server, and follows it", async () => {
    await chooseApplication("Server @halyard/server-sdk");
    const key = await createKey("reader", "Shop");
    expect(key).toMatch(/^hr_/);
    await eventually(async () => (await call(url("sdk/ruleset?format=2"), { key })).status === 200);
    await page.getByText("The first request with Shop arrived.").waitFor();
    expect(errors).toEqual([]);
  });
}
