import { readFile } from "node:fs/promises";
import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

const staff = {
  name: "staff",
  conditions: [{ attribute: "email", operator: "ends_with", value: "@example.com" }],
};

/** The history of a flag and of the project: changes, their authors, and rollbacks. */
export function describeHistory(given: () => DashboardSystem): void {
  let ada: Tenant;
  let graceKey: string;
  let flagId: string;
  const url = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const stateUrl = () => url(`flags/${flagId}/environments/${ada.environmentId}`);
  const change = (key: string, body: unknown) => must(stateUrl(), { method: "PATCH", key, body });
  const openHistory = () => openDashboard(given, ada, "/flags/checkout/history");

  beforeAll(async () => {
    ada = await createTenant(given().gateway.url, { name: "History" });
    const operate = (path: string, body: unknown) =>
      must(url(path), { method: "POST", key: operatorToken, body });
    const grace = await operate(`organizations/${ada.organizationId}/users`, {
      email: "grace@example.com",
      name: "Grace",
    });
    const issued = await operate(
      `projects/${ada.projectId}/environments/${ada.environmentId}/keys`,
      { kind: "server", name: "Grace", user_id: grace.id },
    );
    graceKey = issued.key;
    const create = (body: unknown) =>
      must(url("flags"), { method: "POST", key: ada.serverKey, body });
    const gone = await create({ key: "old-banner", name: '=HYPERLINK("x"), old' });
    await must(url(`flags/${gone.id}`), { method: "DELETE", key: ada.serverKey });
    flagId = (await create({ key: "checkout", name: "Checkout" })).id;
    await change(ada.serverKey, { enabled: true, rollout_percentage: 10 });
    await change(graceKey, { targeting_rules: [staff] });
  });

  it("shows who changed a flag, and the difference to the state before", async () => {
    const page = await openHistory();
    const states = page.getByRole("list", { name: "States of checkout in production" });
    const newest = states.locator("> li").first();
    await newest.getByText("grace@example.com").waitFor();
    expect(await newest.innerText()).toContain("Rule “staff”");
    expect(await newest.innerText()).toContain("users whose email ends with @example.com");
    const first = await states.locator("> li").nth(1).innerText();
    expect(first).toMatch(/State\s+off\s+becomes\s+on/);
    expect(first).toMatch(/Percentage\s+100 %\s+becomes\s+10 %/);
    expect(await states.locator("> li").last().innerText()).toContain(
      "The first state of the flag",
    );
    await newest.getByRole("button", { name: /^Full state/ }).press("Enter");
    await newest.getByText('"targeting_rules"').waitFor();
    await expectNoSeriousViolations(page);
    await page.close();
  });

  it("rolls back after a preview, with the keyboard", async () => {
    const page = await openHistory();
    await page.getByRole("button", { name: "Roll back…" }).press("Enter");
    const dialog = page.getByRole("dialog", { name: "Roll back checkout in production" });
    const changes = dialog.getByRole("list", { name: "What changes" });
    expect(await changes.innerText()).toMatch(/Rule “staff”\s+removed/);
    await expectNoSeriousViolations(page);
    await dialog.getByRole("button", { name: "Roll back", exact: true }).press("Enter");
    await page.getByText(/checkout is back to its state of .* in production\./).waitFor();
    await page.getByText("Rollback", { exact: true }).waitFor();
    expect((await must(stateUrl(), { key: ada.serverKey })).targeting_rules).toEqual([]);
    await page.close();
  });

  it("does not roll back a flag that changed after the preview, and shows that change", async () => {
    await change(ada.serverKey, { rollout_percentage: 20 });
    const page = await openHistory();
    await page.getByRole("button", { name: "Roll back…" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("list", { name: "What changes" }).waitFor();
    await change(graceKey, { rollout_percentage: 30 });
    await dialog.getByRole("button", { name: "Roll back", exact: true }).click();
    await dialog.getByText("Nothing was rolled back: someone else changed the flag").waitFor();
    expect((await must(stateUrl(), { key: ada.serverKey })).rollout_percentage).toBe(30);

    await dialog.getByRole("button", { name: "Show the new state" }).click();
    const theirs = dialog.getByRole("list", { name: "Change by someone else" });
    expect(await theirs.innerText()).toMatch(/20 %\s+becomes\s+30 %/);
    const undone = await dialog.getByRole("list", { name: "What changes" }).innerText();
    expect(undone).toMatch(/30 %\s+becomes\s+20 %/);
    await page.close();
  });

  describe("of a flag with many states", () => {
    let page: Page;
    let bannerUrl: string;
    let tenant: Tenant;
    const set = (body: unknown) =>
      must(bannerUrl, { method: "PATCH", key: tenant.serverKey, body });
    const read = () => must(bannerUrl, { key: tenant.serverKey });
    const states = () =>
      page.getByRole("list", { name: "States of banner in production" }).locator("> li");
    const dialog = () => page.getByRole("dialog", { name: "Restore a state of banner" });
    const restore = () => dialog().getByRole("button", { name: "Restore", exact: true });
    const openDialog = (at: number) =>
      states().nth(at).getByRole("button", { name: "Restore this" }).press("Enter");

    beforeAll(async () => {
      tenant = await createTenant(given().gateway.url, { name: "Many states" });
      const body = { key: "banner", name: "Banner" };
      const { id } = await must(url("flags"), { method: "POST", key: tenant.serverKey, body });
      bannerUrl = url(`flags/${id}/environments/${tenant.environmentId}`);
      await set({ enabled: true, rollout_percentage: 1, targeting_rules: [staff] });
      for (let percentage = 2; percentage <= 22; percentage += 1)
        await set({ rollout_percentage: percentage, targeting_rules: [] });
      page = await openDashboard(given, tenant, "/flags/banner/history");
      await states().first().waitFor();
    });
    afterAll(() => page?.close());

    it("restores any of them after a preview, also one that was not loaded at first", async () => {
      expect(await states().count()).toBe(20);
      await page.getByRole("button", { name: "Load older states" }).press("Enter");
      await page.getByText("This is the whole history").waitFor();
      expect(await states().count()).toBe(23);
      expect(await states().first().getByRole("button", { name: "Restore this" }).count()).toBe(0);
      await openDialog(21);
      const changes = await dialog().getByRole("list", { name: "What changes" }).innerText();
      expect(changes).toMatch(/Percentage\s+22 %\s+becomes\s+1 %/);
      expect(changes).toMatch(/Rule “staff”\s+added/);
      await expectNoSeriousViolations(page);
      await restore().press("Enter");
      await page.getByText(/banner is back to its state of .* in production\./).waitFor();
      const { enabled, rollout_percentage: percentage, targeting_rules: rules } = await read();
      expect({ enabled, percentage, rules }).toEqual({
        ...{ enabled: true, percentage: 1, rules: [staff] },
      });
      await eventually(async () => (await states().count()) === 24);
    });

    it("does not overwrite a change that was made after the preview, and shows it", async () => {
      await openDialog(1);
      await dialog().getByRole("list", { name: "What changes" }).waitFor();
      await set({ rollout_percentage: 50 });
      await restore().click();
      await dialog().getByText("Nothing was restored: someone else changed the flag").waitFor();
      expect((await read()).rollout_percentage).toBe(50);
      await dialog().getByRole("button", { name: "Show the new state" }).click();
      await dialog().getByRole("list", { name: "Change by someone else" }).waitFor();
      await restore().click();
      await dialog().waitFor({ state: "detached" });
      expect(await read()).toMatchObject({ rollout_percentage: 22, targeting_rules: [] });
    });

    it("explains why a state cannot be restored", async () => {
      await eventually(async () => (await states().count()) === 26);
      await openDialog(3);
      await dialog().getByText("There is nothing to restore: the flag has this state").waitFor();
      await dialog().getByText("Close", { exact: true }).click();

      const message = "/targeting_rules/0/conditions/0/value must be RE2 syntax";
      await page.route(bannerUrl, (route) =>
        route.request().method() === "PATCH"
          ? route.fulfill({ status: 400, json: { error: { code: "VALIDATION_001", message } } })
          : route.continue(),
      );
      await openDialog(2);
      await restore().click();
      await dialog().getByText("This state cannot be restored").waitFor();
      await dialog().getByText("Rule 1, condition 1: must be RE2 syntax").waitFor();
      await expectNoSeriousViolations(page);
    });
  });

  it("explains that the first state has nothing before it", async () => {
    const page = await openDashboard(given, ada, "/flags/checkout/history?env=staging");
    await page.getByText("There is no earlier state to roll back to yet.").waitFor();
    expect(await page.getByRole("button", { name: "Roll back…" }).isDisabled()).toBe(true);
    const { status, body } = await call(
      url(`flags/${flagId}/environments/${ada.otherEnvironmentId}/rollback`),
      { method: "POST", key: ada.serverKey },
    );
    expect([status, body.error.code]).toEqual([409, "CONFLICT_002"]);
    await page.close();
  });

  it("filters the project's history by person, keeps it in the address, and has no dead links", async () => {
    const page = await openDashboard(given, ada, "/history");
    const errors = collectConsoleErrors(page);
    await page.getByText("ada@example.com created old-banner").waitFor();
    await page.getByRole("link", { name: "checkout" }).first().waitFor();
    expect(await page.getByRole("link", { name: "old-banner", exact: true }).count()).toBe(0);
    await choose(page, "Person", "grace@example.com");
    await page.getByText("ada@example.com created old-banner").waitFor({ state: "detached" });
    await page.getByText("grace@example.com added rule “staff” to checkout").waitFor();
    await page.reload();
    await page.getByText("grace@example.com added rule “staff” to checkout").waitFor();
    expect(await page.getByText("ada@example.com created old-banner").count()).toBe(0);
    await page.getByRole("button", { name: /^Details of: set the percentage/ }).press("Enter");
    await page.getByRole("list", { name: "What changed" }).getByText("30 %").waitFor();
    await expectNoSeriousViolations(page);
    expect(errors).toEqual([]);
    await page.close();
  });

  it("downloads what the filters select as CSV, safe for spreadsheets", async () => {
    const page = await openDashboard(given, ada, "/history?action=created");
    await page.getByText("ada@example.com created old-banner").waitFor();
    const downloading = page.waitForEvent("download");
    await page.getByRole("button", { name: "Download as CSV" }).click();
    const download = await downloading;
    expect(download.suggestedFilename()).toMatch(/^web-changes-\d{4}-\d\d-\d\d\.csv$/);
    const [header, ...records] = (await readFile(await download.path(), "utf8")).split("\r\n");
    expect(header).toBe(
      "\uFEFFtime,person,change,difference,action,how,environment,flag_key,api_key_id,before,after,id,signed_in_by",
    );
    expect(records).toHaveLength(3);
    expect(records[0]).toContain(",ada@example.com,created checkout,");
    expect(records[1]).toContain(',"Name added: =HYPERLINK(""x""), old\n');
    await page.getByText(/^2 changes in/).waitFor();
    await page.close();
  });

  it("filters the project's history by a flag, whose key may have capitals, and by day", async () => {
    const body = { key: "newBanner", name: "New banner" };
    await must(url("flags"), { method: "POST", key: ada.serverKey, body });
    const page = await openDashboard(given, ada, "/history");
    await page.getByText("ada@example.com created newBanner").waitFor();
    await page.getByRole("combobox", { name: "Flag" }).fill("NewB");
    await page.getByRole("option", { name: "newBanner" }).click();
    await page.getByText("ada@example.com created checkout").waitFor({ state: "detached" });
    await page.getByText("ada@example.com created newBanner").waitFor();
    await page.goto(`${given().gateway.url}/history?to=2020-01-31`);
    await page.getByText("No change matches").waitFor();
    await page.close();
  });

  it("says that a key of one environment sees a part of the history", async () => {
    const page = await openDashboard(given, { serverKey: ada.environmentOnlyKey }, "/history");
    await page.getByText("Your key is limited to production").waitFor();
    await page.getByText("grace@example.com added rule “staff” to checkout").waitFor();
    expect(await page.getByText("operator created the project").count()).toBe(0);
    await page.close();
  });
}

async function choose(page: Page, label: string, option: string): Promise<void> {
  await page.getByRole("button", { name: label }).press("Enter");
  await page.getByRole("option", { name: option }).click();
}
