import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

const narrow = { width: 360, height: 740 };

/** Audiences: creating one, its alternatives, its list, rules that use it, and its end. */
export function describeAudiences(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  let flag: { id: string };

  const api = (path: string, method = "GET", body?: object) =>
    must(`${given().gateway.url}/api/v1/${path}`, {
      ...{ method, key: tenant.serverKey },
      ...(body && { body }),
    });
  const stored = () => api("audiences/beta-testers");
  const button = (name: string | RegExp, within: Page | Locator = page): Locator =>
    within.getByRole("button", { name });
  const dialog = () => page.getByRole("dialog");
  const entry = () => page.getByLabel("One entry");
  const save = async () => {
    await button("Save changes").click();
    await button("Save changes").waitFor({ state: "detached" });
  };
  const choose = (name: string, lines: readonly string[]) =>
    page.locator("input[type=file]").setInputFiles({
      name,
      mimeType: "text/csv",
      buffer: Buffer.from(lines.join("\n")),
    });

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Audiences" });
    flag = await api("flags", "POST", { key: "new-editor", name: "New editor" });
    page = await openDashboard(given, tenant, "/flags");
    errors = collectConsoleErrors(page);
  });
  afterAll(() => page?.close());

  it("creates an audience with the keyboard", async () => {
    await page.getByRole("link", { name: "Audiences", exact: true }).press("Enter");
    await page.getByRole("heading", { name: "No audiences yet" }).waitFor();
    await expectNoSeriousViolations(page);
    await button("Create audience").press("Enter");
    await dialog().getByLabel("Name").fill("Beta testers");
    expect(await dialog().getByLabel("Key").inputValue()).toBe("beta-testers");
    await dialog().getByLabel("Name").press("Enter");
    await page.getByRole("heading", { name: "Beta testers" }).waitFor();
    expect(await stored()).toMatchObject({ name: "Beta testers", match: [], list: null });
  });

  it("names the fields of an alternative that are empty, then saves it", async () => {
    await button("Add alternative").press("Enter");
    const alternative = page.getByRole("region", { name: "Alternative 1" });
    await button("Save changes").click();
    await page.getByText("Not saved: correct 2 fields.").waitFor();
    await alternative.getByText("Enter the name of an attribute.").waitFor();
    await alternative.getByRole("combobox", { name: "Attribute" }).fill("plan");
    await page.keyboard.press("Tab");
    await alternative.getByRole("textbox", { name: "Value", exact: true }).fill("beta");
    await expectNoSeriousViolations(page);
    await save();
    expect((await stored()).match).toEqual([
      [{ attribute: "plan", operator: "equals", value: "beta" }],
    ]);
  });

  it("counts the lines of a file that would be rejected, and does not upload it", async () => {
    await choose("beta.csv", ["user-1", ",x", 'us"er', "user-2", ...Array(30).fill(",y")]);
    await page.getByText("The file has 2 entries and 32 rejected lines.").waitFor();
    const lines = page.getByRole("list", { name: "Rejected lines" });
    await lines.getByText("Line 2 has no entry.").waitFor();
    await lines.getByText("Line 3 has a quote in the wrong place.").waitFor();
    await lines.getByText("and 12 more").waitFor();
    expect(await button("Upload 2 entries").isDisabled()).toBe(true);
    await expectNoSeriousViolations(page);
  });

  it("shows the progress of an upload, and keeps the old list if it is cancelled", async () => {
    const isUpload = /\/list\?/;
    await page.route(isUpload, () => undefined);
    await choose("beta.csv", ["user-1"]);
    await button("Upload 1 entry").click();
    await page.getByRole("progressbar").waitFor();
    await expectNoSeriousViolations(page);
    await button("Cancel the upload").click();
    await page.getByRole("progressbar").waitFor({ state: "detached" });
    await page.unroute(isUpload);
    expect((await stored()).list).toBeNull();
  });

  it("uploads a list with a header", async () => {
    await choose("beta.csv", ["id,since", "user-1,2026", "user-2,2026", "user-2,2027"]);
    await page.getByText("The first line is a header").click();
    await button("Upload 3 entries").click();
    await page.getByText("The list of beta-testers has 2 entries.").waitFor();
    await page.getByText("The list has 2 entries, compared with id.").waitFor();
    expect((await stored()).list).toEqual({ attribute: "id", count: 2 });
  });

  it("looks up, adds and removes one entry", async () => {
    const result = (text: string) => page.getByText(text, { exact: true });
    await entry().fill("user-1");
    await entry().press("Enter");
    await result("user-1 is in the list.").waitFor();
    await entry().fill("user-7");
    await button("Look up").click();
    await result("user-7 is not in the list.").waitFor();
    await button("Add", page.locator("form")).click();
    await result("user-7 is in the list now.").waitFor();
    await page.getByText("The list has 3 entries, compared with id.").waitFor();
    await button("Remove", page.locator("form")).click();
    await result("user-7 is not in the list any more.").waitFor();
    expect((await stored()).list.count).toBe(2);
  });

  it("is chosen in a rule, which says so in plain English", async () => {
    await page.goto(`${given().gateway.url}/flags/new-editor`);
    await page.getByRole("switch", { name: "Flag in production" }).press("Space");
    await button("Add rule").press("Enter");
    await button("Add audience").press("Enter");
    await button("Save changes").click();
    await page.getByText("Choose an audience.").waitFor();
    await button(/In audience/).click();
    await page.getByRole("option", { name: /beta-testers/ }).click();
    await page
      .getByText("On for users in audience beta-testers. Everyone else gets it off.")
      .first()
      .waitFor();
    await expectNoSeriousViolations(page);
    await save();
    const state = await api(`flags/${flag.id}/environments/${tenant.environmentId}`);
    expect(state.targeting_rules[0].conditions).toEqual([{ audience: "beta-testers" }]);
  });

  it("says why a user is in the audience or not", async () => {
    const result = page.getByRole("region", { name: "Result" });
    await page.getByRole("textbox", { name: "User id" }).fill("user-1");
    await button("Try this user").click();
    await result.getByText(/the user is in its list/).waitFor();
    await page.getByRole("textbox", { name: "User id" }).fill("user-9");
    await button("Try this user").click();
    await result.getByText(/the user is not in its list, and no alternative matches/).waitFor();
    await result.getByText("Alternative 1:").waitFor();
    await expectNoSeriousViolations(page);
  });

  it("says which flags a change touches before it is saved", async () => {
    await page.getByRole("link", { name: "Open the audience beta-testers" }).click();
    const uses = page.getByRole("list", { name: "Flags that use this audience" });
    await uses.getByText("new-editor").waitFor();
    await page.getByRole("textbox", { name: "Value", exact: true }).fill("pro");
    await button("Save changes").click();
    await dialog().getByText("1 flag in 1 environment").waitFor();
    await dialog().getByText("new-editor").waitFor();
    await expectNoSeriousViolations(page);
    await button("Save", dialog()).click();
    await button("Save changes").waitFor({ state: "detached" });
    expect((await stored()).match[0][0].value).toBe("pro");
    const history = page.getByRole("list", { name: "Versions of beta-testers" });
    await history.getByText("Alternative 1: plan is pro").first().waitFor();
  });

  it("is marked as changed in the history of a flag whose state refers to it", async () => {
    const history = await openDashboard(given, tenant, "/flags/new-editor/history");
    const current = history.getByRole("listitem").filter({ hasText: "Current state" });
    await current.getByText(/^The audience beta-testers has changed since: /).waitFor();
    expect(await history.getByText(/has changed since/).count()).toBe(1);
    await expectNoSeriousViolations(history);
    await history.close();
  });

  it("keeps two people's edits of different parts, and asks about the same one", async () => {
    await page.getByRole("textbox", { name: "Name", exact: true }).fill("Mine");
    await api("audiences/beta-testers", "PATCH", { description: "Theirs" });
    await page.getByText("Someone else changed the audience first.").waitFor();
    expect(await page.getByRole("textbox", { name: "Description" }).inputValue()).toBe("Theirs");
    await api("audiences/beta-testers", "PATCH", { name: "Theirs" });
    await page.getByText("Name: you both changed this.").waitFor();
    expect(await button("Save changes").isDisabled()).toBe(true);
    await expectNoSeriousViolations(page);
    await button("Keep mine").click();
    await save();
    expect(await stored()).toMatchObject({ name: "Mine", description: "Theirs" });
  });

  it("offers no changes to a key of one environment", async () => {
    const limited = await openDashboard(
      given,
      { serverKey: tenant.environmentOnlyKey },
      "/audiences/beta-testers",
    );
    await limited.getByText("Your key changes only one environment").first().waitFor();
    expect(await button("Add alternative", limited).isDisabled()).toBe(true);
    expect(await button(/Delete|Choose a file|Remove the list/, limited).count()).toBe(0);
    await limited.getByLabel("One entry").fill("user-1");
    await button("Look up", limited).click();
    await limited.getByText("user-1 is in the list.", { exact: true }).waitFor();
    await expectNoSeriousViolations(limited);
    await limited.close();
  });

  it("is not deleted while a rule uses it, and says where", async () => {
    await button("Delete audience").first().click();
    await button("Delete audience", dialog()).click();
    await dialog()
      .getByText(/is used by .*new-editor.*production/)
      .waitFor();
    await expectNoSeriousViolations(page);
    await button("Cancel", dialog()).click();
  });

  it.each(["light", "dark"] as const)("fits a narrow screen in %s colors", async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(narrow);
    for (const path of ["/audiences", "/audiences/beta-testers", "/flags/new-editor"]) {
      await page.goto(`${given().gateway.url}${path}`);
      await page.getByText("beta-testers").first().waitFor();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([path, width]).toEqual([path, narrow.width]);
      await expectNoSeriousViolations(page);
    }
  });

  it("is deleted with the last rule that used it", async () => {
    await page.emulateMedia({ colorScheme: null });
    await page.setViewportSize({ width: 1_280, height: 800 });
    const state = `flags/${flag.id}/environments/${tenant.environmentId}`;
    await api(state, "PATCH", { targeting_rules: [] });
    await page.goto(`${given().gateway.url}/audiences/beta-testers`);
    await button("Delete audience").first().click();
    await button("Delete audience", dialog()).click();
    await page.getByText("beta-testers is deleted.").waitFor();
    await eventually(async () => (await api("audiences")).audiences.length === 0);
    await page.goto(`${given().gateway.url}/history`);
    await page.getByText("deleted the audience").first().waitFor();
  });

  it("is marked as deleted in the history of the flag", async () => {
    await page.goto(`${given().gateway.url}/flags/new-editor/history`);
    await page.getByText("The audience beta-testers no longer exists.").waitFor();
  });

  it("writes no error to the console", () => {
    // The browser reports the rejected deletion.
    expect(errors.filter((text) => !text.includes("409"))).toEqual([]);
  });
}
