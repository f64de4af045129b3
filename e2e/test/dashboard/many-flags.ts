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

/** Tags, owners and the archive; filters, orders, changes of many flags and the search. */
export function describeManyFlags(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  const url = (path: string) => `${given().gateway.url}${path}`;
  const read = async (key: string) => {
    const { flags } = await must(url(`/api/v1/flags?key=${key}`), { key: tenant.serverKey });
    return flags[0];
  };
  const keysShown = () => page.getByRole("row").getByRole("link").allInnerTexts();
  const choose = async (filter: string, option: string) => {
    await page.getByRole("button", { name: filter }).click();
    await page.getByRole("option", { name: option, exact: true }).click();
  };
  const dialog = () => page.getByRole("dialog");
  const change = async (action: string) => {
    await page.getByRole("button", { name: "Change", exact: true }).click();
    await page.getByRole("menuitem", { name: action }).click();
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Many flags" });
    for (const key of ["alpha", "bravo", "charlie", "delta"])
      await must(url("/api/v1/flags"), {
        method: "POST",
        key: tenant.serverKey,
        body: { key, name: `Flag ${key}`, type: key === "delta" ? "kill_switch" : "release" },
      });
    page = await openDashboard(given, tenant);
    errors = collectConsoleErrors(page);
  });
  afterAll(() => page?.close());

  it("creates a flag with tags and an owner", async () => {
    await page.getByRole("button", { name: "Create flag" }).click();
    await dialog().getByLabel("Name").fill("Echo");
    await dialog().getByLabel("Tags").fill("Team A, beta,");
    await dialog().getByLabel("Owner").fill("Ada");
    await expectNoSeriousViolations(page);
    await dialog().getByRole("button", { name: "Create flag" }).click();
    await page.getByText("Owner: Ada").waitFor();
    expect(await read("echo")).toMatchObject({ tags: ["beta", "team-a"], owner: "Ada" });
  });

  it("changes tags and the owner with the keyboard, and archives and restores the flag", async () => {
    await page.getByRole("link", { name: "Settings" }).click();
    await page.getByLabel("Tags", { exact: true }).focus();
    await page.keyboard.press("Backspace");
    await page.keyboard.type("größe");
    await page.keyboard.press("Enter");
    await page.getByText("“größe” is not a tag").waitFor();
    const save = page.getByRole("button", { name: "Save settings" });
    expect(await save.isDisabled()).toBe(true);
    await page.keyboard.press("Backspace");
    await page.keyboard.type("shop");
    await page.keyboard.press("Enter");
    await page.getByLabel("Owner").fill("Team Shop");
    await page.keyboard.press("Enter");
    await page.getByText("The settings of echo are saved.").waitFor();
    expect(await read("echo")).toMatchObject({ tags: ["beta", "shop"], owner: "Team Shop" });
    await page.getByRole("button", { name: "Archive flag" }).press("Enter");
    await page.getByText("echo is archived.").waitFor();
    await page.getByText("Archived", { exact: true }).waitFor();
    await expectNoSeriousViolations(page);
    await page.getByRole("button", { name: "Restore flag" }).press("Enter");
    await page.getByText("echo is restored.").waitFor();
    await page.goto(url("/history"));
    await page.getByText("restored echo").first().waitFor();
    await page.getByText("archived echo").first().waitFor();
  });

  it("selects a range with Shift, and shows what a change does before it is made", async () => {
    await page.goto(url("/flags"));
    await page.getByRole("checkbox", { name: "Select alpha" }).click();
    await page.getByRole("checkbox", { name: "Select charlie" }).click({ modifiers: ["Shift"] });
    await page.getByText("3 selected").waitFor();
    await change("Add tags");
    await dialog().getByLabel("Tags to add").fill("beta,");
    await dialog().getByText("Adds the tag beta to 3 flags.").waitFor();
    await expectNoSeriousViolations(page);
    expect((await read("alpha")).tags).toEqual([]);
    await dialog().getByRole("button", { name: "Change 3 flags" }).click();
    await dialog().waitFor({ state: "detached" });
    expect((await read("charlie")).tags).toEqual(["beta"]);
    await change("Set the owner");
    await dialog().getByLabel("Owner").fill("Ada");
    await dialog().getByRole("button", { name: "Change 3 flags" }).click();
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("row", { name: /alpha.*beta.*Ada/ }).waitFor();
  });

  it("selects all flags of a filter, and archives them", async () => {
    await page.getByRole("button", { name: "Clear", exact: true }).click();
    await choose("Tag", "beta");
    await choose("Owner", "Ada");
    await page.getByRole("checkbox", { name: "Select all 3 flags that are listed" }).press("Space");
    await change("Archive");
    await dialog().getByText("Archives 3 flags.").waitFor();
    await dialog().getByRole("button", { name: "Change 3 flags" }).click();
    await page.getByText("Done: Archives 3 flags.").waitFor();
    await page.getByText("No flag matches").waitFor();
    expect((await read("bravo")).archived_at).not.toBeNull();
  });

  it("shows archived flags only with a filter, which Back undoes", async () => {
    await page.goto(url("/flags"));
    await page.getByRole("link", { name: "delta" }).waitFor();
    expect(await keysShown()).toEqual(["delta", "echo"]);
    await choose("Archive", "Archived or not");
    await eventually(async () => (await keysShown()).length === 5);
    await choose("Order", "By creation");
    await page.getByRole("button", { name: "Sort descending" }).click();
    await eventually(async () => (await keysShown())[0] === "echo");
    await page.waitForURL(/archived=with.*sort=-created_at|sort=-created_at.*archived=with/);
    await page.reload();
    await eventually(async () => (await keysShown()).join() === "echo,delta,charlie,bravo,alpha");
    await page.goBack();
    await page.goBack();
    await eventually(async () => (await keysShown())[0] === "alpha");
    await page.goBack();
    await eventually(async () => (await keysShown()).join() === "delta,echo");
  });

  it("shows the first flags before the whole list has arrived", async () => {
    const { promise: released, resolve: release } = Promise.withResolvers<void>();
    const lists = /\/api\/v1\/flags\?include=environments/;
    await page.route(lists, async (route) => {
      const isFirst = route.request().url().includes("limit=");
      const response = await route.fetch(
        isFirst ? {} : { url: url("/api/v1/flags?include=environments") },
      );
      const { flags } = await response.json();
      if (!isFirst) await released;
      const part = isFirst
        ? { flags: flags.slice(0, 4), next_cursor: "more" }
        : { flags: flags.slice(4) };
      await route.fulfill({ response, json: part });
    });
    await page.reload();
    await page.getByText("1 flag, reading more…").waitFor();
    expect(await page.getByRole("link", { name: "echo" }).count()).toBe(0);
    release();
    await page.getByRole("link", { name: "echo" }).waitFor();
    await page.getByText("2 flags", { exact: true }).first().waitFor();
    await page.unroute(lists);
  });

  it("opens the search and the help with keys, but not while a person types", async () => {
    await page.keyboard.press("/");
    await dialog().getByRole("combobox").fill("ECH");
    await dialog().getByRole("option", { name: "echo" }).waitFor();
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Echo" }).waitFor();
    await page.keyboard.press("Control+k");
    await dialog().getByRole("combobox").fill("webh");
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Webhooks", exact: true }).waitFor();
    await page.keyboard.press("?");
    await dialog().getByText("Search flags and pages").waitFor();
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Escape");
    await page.goto(url("/flags"));
    await page.getByRole("searchbox").focus();
    await page.keyboard.type("a/?");
    expect(await page.getByRole("searchbox").inputValue()).toBe("a/?");
    expect(await dialog().count()).toBe(0);
    await page.keyboard.press("Escape");
    expect(errors).toEqual([]);
  });
}
