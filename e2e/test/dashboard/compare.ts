import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

const rule = (country: string) => ({
  conditions: [{ attribute: "country", operator: "equals", value: country }],
});

/** The state of each flag in staging. In production, all are off, and the ones with rules have a rule for Germany. */
const stagingStates = {
  "equal-rules": { targeting_rules: [rule("DE")] },
  "other-rules": { targeting_rules: [rule("AT")] },
  "on-in-staging": { enabled: true },
  "half-in-staging": { rollout_percentage: 50 },
  same: {},
} as const;

/** Two environments side by side, and copies from one to the other. */
export function describeCompare(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const ids = new Map<string, string>();
  const api = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const stateUrl = (key: string, environmentId: string) =>
    api(`flags/${ids.get(key)}/environments/${environmentId}`);
  const change = (key: string, environmentId: string, body: object) =>
    must(stateUrl(key, environmentId), { method: "PATCH", key: tenant.serverKey, body });
  const inProduction = (key: string) =>
    must(stateUrl(key, tenant.environmentId), { key: tenant.serverKey });
  const choose = (key: string) => page.getByRole("checkbox", { name: `Choose ${key}` });
  const shown = () => page.getByRole("table").getByRole("link").allTextContents();

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Compare" });
    for (const [key, staging] of Object.entries(stagingStates)) {
      const targeting_rules = "targeting_rules" in staging ? [rule("DE")] : [];
      const body = { key, name: key, targeting_rules };
      const { id } = await must(api("flags"), { method: "POST", key: tenant.serverKey, body });
      ids.set(key, id);
      if (Object.keys(staging).length > 0) await change(key, tenant.otherEnvironmentId, staging);
    }
    page = await openDashboard(given, tenant, "/compare?from=staging&to=production");
  });
  afterAll(() => page?.close());

  it("shows the flags that differ, also by rules of the same number", async () => {
    await page.getByText("3 of 5 flags differ").waitFor();
    expect(await shown()).toEqual(["half-in-staging", "on-in-staging", "other-rules"]);
    await page.getByRole("checkbox", { name: "Only differences" }).press("Space");
    await page.getByRole("link", { name: "equal-rules" }).waitFor();
    expect(await choose("equal-rules").isDisabled()).toBe(true);
    await expectNoSeriousViolations(page);
    await page.getByRole("checkbox", { name: "Only differences" }).press("Space");
  });

  it("shows a difference in words", async () => {
    await page.getByRole("button", { name: "Show the difference of other-rules" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("country is DE").waitFor();
    await dialog.getByText("country is AT").waitFor();
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
  });

  it("copies a chosen flag with the keyboard, after a preview", async () => {
    await choose("half-in-staging").press("Space");
    await page.getByRole("button", { name: "Copy to production", exact: true }).press("Enter");
    const dialog = page.getByRole("dialog");
    await dialog.getByText("50 %").waitFor();
    await expectNoSeriousViolations(page);
    expect(await inProduction("half-in-staging")).toMatchObject({ rollout_percentage: 100 });
    await dialog.getByRole("button", { name: "Copy 1 flag to production" }).press("Enter");
    await dialog.getByText("1 copied.").waitFor();
    expect(await inProduction("half-in-staging")).toMatchObject({ rollout_percentage: 50 });
    await dialog.getByRole("button", { name: "Close" }).last().press("Enter");
    await eventually(async () => !(await shown()).includes("half-in-staging"));
  });

  it("skips a flag that changed after the preview", async () => {
    await choose("other-rules").press("Space");
    await page.getByRole("button", { name: "Copy to production", exact: true }).click();
    const dialog = page.getByRole("dialog");
    const copy = dialog.getByRole("button", { name: "Copy 1 flag to production" });
    await copy.waitFor();
    await change("other-rules", tenant.environmentId, { rollout_percentage: 10 });
    await copy.click();
    await dialog.getByText("compare again").waitFor();
    expect(await inProduction("other-rules")).toMatchObject({
      rollout_percentage: 10,
      targeting_rules: [rule("DE")],
    });
    await dialog.getByRole("button", { name: "Close" }).last().click();
  });

  it("stops on request, and says what was copied", async () => {
    const stopped = Promise.withResolvers<void>();
    await page.route(`**/environments/${tenant.environmentId}`, async (route) => {
      if (route.request().method() === "PATCH") await stopped.promise;
      await route.continue();
    });
    await page.getByRole("button", { name: "Choose all shown" }).click();
    await page.getByRole("button", { name: "Copy to production", exact: true }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Copy 2 flags to production" }).click();
    await dialog.getByRole("button", { name: "Stop" }).click();
    stopped.resolve();
    await dialog.getByText("1 copied, 1 not copied.").waitFor();
    expect(await inProduction("on-in-staging")).toMatchObject({ enabled: true });
    expect(await inProduction("other-rules")).toMatchObject({ targeting_rules: [rule("DE")] });
    await dialog.getByRole("button", { name: "Close" }).last().click();
  });

  it("explains that a key of one environment cannot compare", async () => {
    const limited = await openDashboard(
      given,
      { serverKey: tenant.environmentOnlyKey },
      "/compare",
    );
    await limited.getByText("Your key reaches one environment").waitFor();
    await expectNoSeriousViolations(limited);
    await limited.close();
  });
}
