import { expect, it } from "@jest/globals";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, operatorToken } from "../../src/system/tenancy.ts";

/** Keys and tokens at the front door of the dashboard. */
export function describeSignIn(given: () => DashboardSystem): void {
  const openSignIn = async () => {
    const { browser, gateway } = given();
    const page = await browser.context.newPage();
    await page.goto(gateway.url);
    return page;
  };

  it("signs in with a server key, and shows its project", async () => {
    const { gateway } = given();
    const tenant = await createTenant(gateway.url, { name: "Signing in" });
    const page = await openSignIn();
    const errors = collectConsoleErrors(page);
    await page.getByLabel("Server key").fill(tenant.serverKey);
    await page.getByRole("button", { name: "Sign in", exact: true }).click();
    await page.getByText("Web has no flags yet").waitFor();
    expect(page.url()).toBe(`${gateway.url}/flags`);
    await page.reload();
    await page.getByText("Web has no flags yet").waitFor();
    expect(errors).toEqual([]);
    await page.close();
  });

  it("says that a client key cannot be used", async () => {
    const { gateway } = given();
    const tenant = await createTenant(gateway.url, { name: "Client key" });
    const page = await openSignIn();
    await page.getByLabel("Server key").fill(tenant.clientKey);
    await page.keyboard.press("Enter");
    await page.getByText("This key cannot manage flags.").waitFor();
    await page.close();
  });

  it("keeps the operator's token in memory only", async () => {
    const page = await openSignIn();
    await page.getByLabel("Server key").fill(operatorToken);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Organizations" }).waitFor();
    const stored = await page.evaluate(() =>
      JSON.stringify({ ...sessionStorage, ...localStorage }),
    );
    expect(stored).not.toContain(operatorToken);
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.close();
  });

  it("returns to the sign-in page when the key is revoked, and says why", async () => {
    const { gateway } = given();
    const tenant = await createTenant(gateway.url, { name: "Revoked" });
    const page = await openDashboard(given, tenant);
    await page.getByText("Web has no flags yet").waitFor();
    const keyId = tenant.serverKey.split("_")[1];
    await must(
      `${gateway.url}/api/v1/projects/${tenant.projectId}/environments/${tenant.environmentId}/keys/${keyId}`,
      { method: "DELETE", key: operatorToken },
    );
    await page.getByText("A key is no longer valid").waitFor();
    await page.close();
  });

  it("does not switch to another project when one of two keys is revoked", async () => {
    const { gateway } = given();
    const [first, second] = await Promise.all([
      createTenant(gateway.url, { name: "First" }),
      createTenant(gateway.url, { name: "Second" }),
    ]);
    const page = await openDashboard(given, first);
    await page.getByRole("button", { name: /ada@example.com/ }).click();
    await page.getByRole("menuitem", { name: "Use another key" }).click();
    await page.getByLabel("Server key").fill(second.serverKey);
    await page.keyboard.press("Enter");
    await page.getByText("Second · ada@example.com").waitFor();
    expect(await page.content()).not.toContain("hs_");
    const keyId = second.serverKey.split("_")[1];
    await must(
      `${gateway.url}/api/v1/projects/${second.projectId}/environments/${second.environmentId}/keys/${keyId}`,
      { method: "DELETE", key: operatorToken },
    );
    await page.getByText("A key is no longer valid").waitFor();
    await page.getByRole("button", { name: "Continue in Web" }).click();
    await page.getByText("First · ada@example.com").waitFor();
    await page.close();
  });

  it("hands the keys to a new tab, as long as a tab is signed in", async () => {
    const { browser, gateway } = given();
    const tenant = await createTenant(gateway.url, { name: "New tab" });
    await must(`${gateway.url}/api/v1/flags`, {
      ...{ method: "POST", key: tenant.serverKey, body: { key: "new-tab", name: "New tab" } },
    });
    const page = await openDashboard(given, tenant);
    const link = page.getByRole("link", { name: "new-tab" }).first();
    const [opened] = await Promise.all([
      browser.context.waitForEvent("page"),
      link.click({ modifiers: ["Control"] }),
    ]);
    await opened.getByRole("button", { name: "Add rule" }).waitFor();
    expect(await opened.evaluate(() => localStorage.length)).toBe(0);
    await Promise.all([page.close(), opened.close()]);
    const late = await browser.context.newPage();
    await late.goto(`${gateway.url}/flags/new-tab`);
    await late.getByRole("heading", { name: "Sign in" }).waitFor();
    await late.close();
  });

  it("hands no keys to a new tab if the signed-in tabs use different ones", async () => {
    const { browser, gateway } = given();
    const tenants = [
      await createTenant(gateway.url, { name: "Shop" }),
      await createTenant(gateway.url, { name: "Bank" }),
    ];
    const pages = [];
    for (const tenant of tenants) {
      const page = await openDashboard(given, tenant);
      await page.getByText("Web has no flags yet").waitFor();
      pages.push(page);
    }
    // Each signed-in tab holds a lock, by which the others see its key.
    await pages[0]?.waitForFunction(async () => (await navigator.locks.query()).held?.length === 2);
    const opened = await browser.context.newPage();
    await opened.goto(`${gateway.url}/flags/checkout`);
    await opened.getByRole("heading", { name: "Sign in" }).waitFor();
    for (const page of [...pages, opened]) await page.close();
  });

  it("stays signed out when the page is loaded again", async () => {
    const tenant = await createTenant(given().gateway.url, { name: "Signed out" });
    const [other, page] = [await openDashboard(given, tenant), await openDashboard(given, tenant)];
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(`${given().gateway.url}/flags`);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await Promise.all([page.close(), other.close()]);
  });

  it("shows the organizations to an operator who signs in at a page of keys", async () => {
    const { browser, gateway } = given();
    for (const path of ["/flags", "/flags/dark-mode/history"]) {
      const page = await browser.context.newPage();
      await page.goto(`${gateway.url}${path}`);
      await page.getByLabel("Server key").fill(operatorToken);
      await page.keyboard.press("Enter");
      await page.getByRole("heading", { name: "Organizations" }).waitFor();
      await page.close();
    }
  });

  it("has no serious finding of axe", async () => {
    const page = await openSignIn();
    await expectNoSeriousViolations(page);
    await page.close();
  });
}
