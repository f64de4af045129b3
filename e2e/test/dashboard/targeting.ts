import { eventually } from "@halyard/testing";
import { startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** The page of a flag: who gets it, trying it for a user, and its settings. */
export function describeTargetingEditor(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let flag: { id: string };

  const api = (path: string, method = "GET", body?: object, key = tenant.serverKey) =>
    must(`${given().gateway.url}/api/v1/flags${path}`, { method, key, ...(body && { body }) });
  const statePath = () => `/${flag.id}/environments/${tenant.environmentId}`;
  const stored = () => api(statePath());
  const button = (name: string | RegExp): Locator => page.getByRole("button", { name });
  const rule = (index: number): Locator => button(new RegExp(`^Rule ${index}:`));
  const save = async () => {
    await button("Save changes").click();
    await button("Save changes").waitFor({ state: "detached" });
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Targeting" });
    flag = await api("", "POST", { key: "dark-mode", name: "Dark mode" });
    page = await openDashboard(given, tenant, "/flags/dark-mode");
  });
  afterAll(() => page?.close());

  it("adds a rule with the keyboard, and says in plain English what the draft does", async () => {
    await page.getByRole("switch", { name: "Flag in production" }).focus();
    await page.keyboard.press("Space");
    await button("Add rule").focus();
    await page.keyboard.press("Enter");
    const attribute = page.getByRole("combobox", { name: "Attribute", exact: true });
    await eventually(() => attribute.evaluate((field) => field === document.activeElement));
    await page.keyboard.type("coun");
    await page.getByRole("option", { name: "country" }).waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    expect(await attribute.inputValue()).toBe("country");
    await page.getByRole("textbox", { name: "Value", exact: true }).fill("DE");
    await page
      .getByText("On for users whose country is DE. Everyone else gets it off.")
      .first()
      .waitFor();
    await save();
    expect(await stored()).toMatchObject({
      enabled: true,
      targeting_rules: [
        { conditions: [{ attribute: "country", operator: "equals", value: "DE" }] },
      ],
    });
  });

  it("shows the API's message at the field that it names, and keeps what was typed", async () => {
    const condition = page.getByRole("group", { name: "Rule 1, condition 1" });
    await condition.getByRole("button", { name: /Operator/ }).click();
    await page.getByRole("option", { name: "matches pattern" }).click();
    const value = condition.getByRole("textbox", { name: "Value" });
    await value.fill("(DE");
    await button("Save changes").click();
    await condition.getByText(/^Must be a regular expression in RE2 syntax/).waitFor();
    expect(await value.inputValue()).toBe("(DE");
    await value.fill("^DE$");
    await save();
  });

  it("moves, duplicates and removes rules, and brings a removed one back", async () => {
    await button("Actions for Rule 1").click();
    await page.getByRole("menuitem", { name: "Duplicate" }).click();
    await rule(2).click();
    await page.getByRole("textbox", { name: "Name (optional)" }).last().fill("Second");
    await button("Actions for Rule 2").click();
    await page.getByRole("menuitem", { name: "Move up" }).click();
    await button(/^Rule 1: Second/).waitFor();
    await button("Actions for Rule 1").click();
    await page.getByRole("menuitem", { name: "Remove" }).click();
    await rule(2).waitFor({ state: "detached" });
    await button("Undo").last().click();
    await button(/^Rule 1: Second/).waitFor();
    await save();
    const { targeting_rules: rules } = await stored();
    expect(rules.map(({ name }: { name?: string }) => name)).toEqual(["Second", undefined]);
  });

  it("moves a rule with the arrow keys, which keeps the focus and announces the position", async () => {
    await button(/^Move Rule 1$/).focus();
    await page.keyboard.press("ArrowDown");
    await button(/^Rule 2: Second/).waitFor();
    await page.getByText("Moved to position 2.").waitFor();
    await page.keyboard.press("ArrowUp");
    await button(/^Rule 1: Second/).waitFor();
    await page.keyboard.press("ArrowUp");
    const focused = () => page.evaluate(() => document.activeElement?.getAttribute("aria-label"));
    expect(await focused()).toBe("Move Rule 1");
    await button("Discard").waitFor({ state: "detached" });
  });

  it("moves a rule by dragging it with the pointer, and back with Escape", async () => {
    await button(/^Move Rule 1$/).hover();
    await page.mouse.down();
    await page.mouse.move(0, 5_000);
    await button(/^Rule 2: Second/).waitFor();
    await page.keyboard.press("Escape");
    await button(/^Rule 1: Second/).waitFor();
    await page.mouse.up();
    await button(/^Move Rule 1$/).hover();
    await page.mouse.down();
    await page.mouse.move(0, 5_000);
    await page.mouse.up();
    await button(/^Rule 2: Second/).waitFor();
    await button("Discard").click();
    await button(/^Rule 1: Second/).waitFor();
  });

  it("says who changed the state under a draft, and saves both edits only when asked to", async () => {
    await page.getByRole("textbox", { name: /^Percentage of the flag/ }).fill("40");
    await page.keyboard.press("Tab");
    await api(statePath(), "PATCH", { enabled: false });
    const merged = page.getByRole("status", { name: "Changed by someone else" });
    await merged.getByText("ada@example.com turned dark-mode off in production").waitFor();
    expect(await stored()).toMatchObject({ enabled: false, rollout_percentage: 100 });
    await button("Save changes").click();
    await merged.waitFor({ state: "detached" });
    await eventually(async () => (await stored()).rollout_percentage === 40);
    expect(await stored()).toMatchObject({ enabled: false });
    await button("Discard").waitFor({ state: "detached" });
    await api(statePath(), "PATCH", { enabled: true });
    await eventually(() => page.getByRole("switch", { name: "Flag in production" }).isChecked());
  });

  it("asks before unsaved changes are lost", async () => {
    await page.getByRole("switch", { name: "Flag in production" }).focus();
    await page.keyboard.press("Space");
    const leave = page.getByRole("link", { name: "Settings" });
    await leave.click();
    await button("Keep editing").click();
    expect(new URL(page.url()).pathname).toBe("/flags/dark-mode");
    await leave.click();
    await button("Leave without saving").click();
    await page.getByRole("heading", { name: "Use it in your code" }).waitFor();
    expect(await stored()).toMatchObject({ enabled: true });
  });

  it("tries the unsaved draft for a user, and keeps the user out of the address and the storage", async () => {
    await page.getByRole("link", { name: "Targeting" }).click();
    await page.getByRole("switch", { name: "Flag in production" }).focus();
    await page.keyboard.press("Space");
    await page.getByRole("textbox", { name: "User id" }).fill("somebody-secret");
    await button("Try this user").click();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByText("The flag is off for everyone.").waitFor();
    await button("Discard").click();
    await result.getByText("The settings have changed since. Try again.").waitFor();
    await button("Try this user").click();
    await result.getByText("No rule matches, so the flag is off.").waitFor();
    await result.getByText("(the user has no such attribute)").first().waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([location.href, { ...sessionStorage }, { ...localStorage }]),
    );
    expect(kept).not.toContain("somebody-secret");
  });

  it("matches case on request, and forgets it with an operator that cannot", async () => {
    const { id } = await api("", "POST", { key: "exact-case", name: "Exact case" });
    const path = `/${id}/environments/${tenant.environmentId}`;
    const condition = { attribute: "plan", operator: "equals", value: "Pro" };
    await api(path, "PATCH", { targeting_rules: [{ conditions: [condition] }] });
    const other = await openDashboard(given, tenant, "/flags/exact-case");
    const save = other.getByRole("button", { name: "Save changes" });
    const saved = async () => {
      await save.click();
      await save.waitFor({ state: "detached" });
      return (await api(path)).targeting_rules[0].conditions[0];
    };
    await other.getByRole("button", { name: /^Rule 1:/ }).click();
    await other.getByText("Match upper and lower case").click();
    expect(await saved()).toEqual({ ...condition, match_case: true });
    await other.getByRole("button", { name: /Operator/ }).click();
    await other.getByRole("option", { name: /^matches/ }).click();
    expect(await saved()).toEqual({ ...condition, operator: "matches_regex" });
    await other.close();
  });

  it.each(["en-US", "de-DE", "fr-FR", "ar-EG", "ja-JP"])(
    "saves no misread number in a browser of %s",
    async (locale) => {
      const browser = await startChromium({ locale });
      const key = `numbers-${locale.toLowerCase()}`;
      const { id } = await api("", "POST", { key, name: "Numbers" });
      const path = `/${id}/environments/${tenant.environmentId}`;
      await api(path, "PATCH", { targeting_rules: [{ conditions: [], rollout_percentage: 50 }] });
      const other = await openDashboard(() => ({ ...given(), browser }), tenant, `/flags/${key}`);
      await other.getByRole("button", { name: /^Rule 1:/ }).click();
      const percentages = other.getByRole("textbox", { name: /in percent$/ });
      const saveButton = other.getByRole("button", { name: "Save changes" });
      const errors = other.getByText("Enter a number from 0 to 100, with at most two decimals.");
      for (const index of [0, 1])
        for (const text of ["2.555", "2,5,5", "150", "1e1"]) {
          await percentages.nth(index).fill(text);
          await errors.waitFor();
          await saveButton.click();
          await other.getByText("Not saved: correct 1 field.").waitFor();
          expect(await percentages.nth(index).inputValue()).toBe(text);
          await percentages.nth(index).fill("25");
          await errors.waitFor({ state: "detached" });
        }
      const decimals = ["de-DE", "fr-FR"].includes(locale) ? "12,05" : "12.05";
      await percentages.nth(0).fill("");
      await percentages.nth(0).pressSequentially(decimals);
      expect(await percentages.nth(0).inputValue()).toBe(decimals);
      await saveButton.click();
      await saveButton.waitFor({ state: "detached" });
      expect(await api(path)).toMatchObject({
        rollout_percentage: 12.05,
        targeting_rules: [{ rollout_percentage: 25 }],
      });
      await browser.close();
    },
  );

  it("shows switches, sliders and the current page in a contrast mode", async () => {
    await page.emulateMedia({ forcedColors: "active", reducedMotion: "reduce" });
    const colorOf = (locator: Locator, property: string, pseudo?: string): Promise<string> =>
      locator.evaluate(
        (element, [name, part]) => getComputedStyle(element, part).getPropertyValue(name as string),
        [property, pseudo],
      );
    const background = (locator: Locator, pseudo?: string) =>
      colorOf(locator, "background-color", pseudo);
    const canvas = await background(page.locator("body"));

    const toggle = page.getByRole("switch", { name: "Flag in production" });
    const track = await background(toggle);
    expect(await background(toggle, "::after")).not.toBe(track);
    await toggle.click();
    await eventually(async () => (await background(toggle)) !== track);
    expect(await background(toggle, "::after")).not.toBe(await background(toggle));

    const slider = page.locator('[class*="track"]:has([class*="fill"])').first();
    const rail = await background(slider, "::before");
    const fill = await background(slider.locator('[class*="fill"]'));
    expect(new Set([canvas, rail, fill]).size).toBe(3);

    const [tab, otherTab] = ["Targeting", "Settings"].map((name) =>
      page.getByRole("link", { name, exact: true }),
    ) as [Locator, Locator];
    const border = (locator: Locator) => colorOf(locator, "border-bottom-color");
    expect(await border(tab)).not.toBe(await border(otherTab));
    const [entry, otherEntry] = ["Flags", "Usage"].map((name) =>
      page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name }),
    ) as [Locator, Locator];
    expect(await background(entry)).not.toBe(await background(otherEntry));

    await page.emulateMedia({ forcedColors: null, reducedMotion: null });
    await toggle.click();
  });

  it("has no serious finding of axe with an open rule", async () => {
    await rule(1).click();
    await page.getByRole("textbox", { name: "Name (optional)" }).waitFor();
    await expectNoSeriousViolations(page);
  });

  it("reads the list of flags only for a field that suggests attributes", async () => {
    await api("", "POST", {
      ...{ key: "regions", name: "Regions", enabled: true },
      targeting_rules: [
        { conditions: [{ attribute: "region", operator: "equals", value: "EU" }], value: true },
      ],
    });
    const linked = await openDashboard(given, tenant, "/keys");
    await linked.getByText("Live", { exact: true }).waitFor();
    let listReads = 0;
    linked.on("request", (request) => {
      const { pathname, searchParams } = new URL(request.url());
      if (pathname === "/api/v1/flags" && !searchParams.has("key")) listReads += 1;
    });
    await linked.goto(`${given().gateway.url}/flags/dark-mode?env=production`);
    await linked.getByText("Live", { exact: true }).waitFor();
    const attribute = linked.getByRole("combobox", { name: "Attribute 1" });
    await attribute.waitFor();
    expect(listReads).toBe(0);
    await attribute.focus();
    await eventually(async () => {
      await attribute.fill("reg");
      await attribute.fill("regi");
      return linked.getByRole("option", { name: "region" }).isVisible();
    });
    expect(listReads).toBe(1);
    await linked.close();
  });

  it("warns about a change that is made while a deletion is confirmed", async () => {
    await page.getByRole("link", { name: "Settings" }).click();
    await button("Delete flag").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("textbox").fill("dark-mode");
    await api(statePath(), "PATCH", { enabled: false });
    await api(statePath(), "PATCH", { enabled: true });
    await dialog.getByRole("button", { name: "Delete flag" }).click();
    await dialog.getByText("Someone changed the flag while this dialog was open").waitFor();
    expect(await stored()).toMatchObject({ enabled: true });
    await dialog.getByRole("button", { name: "Cancel" }).click();
    await dialog.waitFor({ state: "detached" });
  });

  it("deletes a flag after its key is typed, and returns to the list", async () => {
    await page.getByRole("link", { name: "Settings" }).click();
    await expectNoSeriousViolations(page);
    await button("Delete flag").click();
    const dialog = page.getByRole("dialog");
    const confirm = dialog.getByRole("button", { name: "Delete flag" });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog.getByRole("textbox").fill("dark-mode");
    await confirm.click();
    await page.getByText("dark-mode is deleted.").waitFor();
    expect(new URL(page.url()).pathname).toBe("/flags");
    expect(await api("?key=dark-mode")).toEqual({ flags: [] });
  });

  it("does not offer settings and deletion to a key of one environment", async () => {
    await api("", "POST", { key: "shared", name: "Shared" });
    const limited = { serverKey: tenant.environmentOnlyKey };
    const other = await openDashboard(given, limited, "/flags/shared/settings");
    await other.getByText("Your key changes only one environment.").waitFor();
    expect(await other.getByRole("button", { name: /Delete|Save/ }).count()).toBe(0);
    await other.close();
  });
}
