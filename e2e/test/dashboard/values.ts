import { splitBucketOf } from "@halyard/evaluation";
import { createClient } from "@halyard/server-sdk";
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

/** Flags with values: creating one, splitting users, trying a user, and changing variations. */
export function describeValues(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  let staging: { id: string; name: string };

  const api = (path: string, method = "GET", body?: object) =>
    must(`${given().gateway.url}/api/v1/${path}`, {
      ...{ method, key: tenant.serverKey },
      ...(body && { body }),
    });
  const flag = async (key = "checkout-color") => {
    const { flags } = await api(`flags?key=${key}&include=environments,values`);
    return flags[0];
  };
  const stored = async () => api(`flags/${(await flag()).id}/environments/${tenant.environmentId}`);
  const button = (name: string | RegExp, within: Page | Locator = page): Locator =>
    within.getByRole("button", { name });
  const variation = (number: number): Locator =>
    page.getByRole("group", { name: `Variation ${number}` });
  /** Returns the lines in the editor of an object. */
  const linesIn = (number: number) => variation(number).locator(".cm-line").allTextContents();
  const choose = async (label: string | RegExp, option: string | RegExp) => {
    await button(label).click();
    await page.getByRole("option", { name: option }).click();
  };
  const focused = () => page.evaluate(() => document.activeElement?.textContent?.trim());
  const percentOf = (key: string): Locator =>
    page.getByRole("textbox", { name: `${key}, in percent` });
  const save = async () => {
    await button("Save changes").click();
    await button("Save changes").waitFor({ state: "detached" });
  };
  const open = (tab: "Targeting" | "Variations" | "History") =>
    page.getByRole("link", { name: tab, exact: true }).click();

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Values" });
    page = await openDashboard(given, tenant);
    errors = collectConsoleErrors(page);
    const { environments } = await api("me");
    staging = environments.find(({ name }: { name: string }) => name !== "production");
  });
  afterAll(() => page?.close());

  it("creates a text flag with its variations, and checks their keys", async () => {
    await button("Create the first flag").click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("Checkout color");
    await choose(/Value$/, "Text");
    for (const [number, key, value] of [
      [1, "blue", "#0000ff"],
      [2, "blue", "#ff0000"],
    ] as const) {
      await variation(number).getByLabel("Key").fill(key);
      await variation(number).getByLabel("Value").fill(value);
    }
    await variation(2).getByLabel("Name").fill("Red");
    await dialog.getByLabel("Description").focus();
    await variation(2).getByText("Another variation has this key.").waitFor();
    expect(await button("Create flag", dialog).isDisabled()).toBe(true);
    await expectNoSeriousViolations(page);
    await variation(2).getByLabel("Key").fill("red");
    await button("Create flag", dialog).click();
    await page.getByRole("heading", { name: "Checkout color" }).waitFor();
    expect(await flag()).toMatchObject({
      value_type: "string",
      variations: [
        { key: "blue", value: "#0000ff" },
        { key: "red", value: "#ff0000", name: "Red" },
      ],
      serve: { variation: "blue" },
      off_variation: "red",
    });
  });

  it("keeps the focus when a share is removed or added, and a lone share at 100", async () => {
    await choose(/Users for whom the flag is on get/, "A split");
    await button("Remove red from the split").press("Enter");
    expect(await focused()).toBe("Add variation");
    expect(await percentOf("blue").isEditable()).toBe(false);
    expect(await page.getByRole("slider", { name: "blue" }).isDisabled()).toBe(true);
    await button("Add variation").press("Enter");
    await page.getByRole("menuitem", { name: "red" }).press("Enter");
    await page.getByRole("menuitem", { name: "red" }).waitFor({ state: "detached" });
    await page.getByRole("slider", { name: "red" }).and(page.locator(":focus")).waitFor();
    expect(await percentOf("blue").isEditable()).toBe(true);
    await button("Discard").click();
  });

  it("splits users with the keyboard, and says before saving how many move", async () => {
    await page.getByRole("switch", { name: "Flag in production" }).press("Space");
    await choose(/Users for whom the flag is on get/, "A split");
    await percentOf("red").fill("50");
    expect(await percentOf("blue").inputValue()).toBe("50");
    await page.getByText("50 % of these users get another variation when you save.").waitFor();
    await page.getByText("blue for 50 %, red for 50 % of all users.").waitFor();
    await choose(/All others get/, "The application's default");
    await save();
    expect(await stored()).toMatchObject({
      enabled: true,
      serve: {
        split: [
          { variation: "blue", weight: 50, ranges: [[0, 5_000]] },
          { variation: "red", weight: 50, ranges: [[5_000, 10_000]] },
        ],
      },
      off_variation: null,
    });
  });

  it("moves only the difference when the percentages change", async () => {
    await percentOf("blue").fill("60,25");
    await button("Save changes").click();
    await page.getByText("Not saved: correct 1 field.").waitFor();
    await percentOf("blue").fill("60.25");
    expect(await percentOf("red").inputValue()).toBe("39.75");
    await page.getByText("10.25 % of these users get another variation").waitFor();
    await page.getByRole("slider", { name: "blue" }).focus();
    await expectNoSeriousViolations(page);
    await save();
    expect((await stored()).serve.split).toEqual([
      {
        variation: "blue",
        weight: 60.25,
        ranges: [
          [0, 5_000],
          [8_975, 10_000],
        ],
      },
      { variation: "red", weight: 39.75, ranges: [[5_000, 8_975]] },
    ]);
  });

  it("announces how many users move when a slider rests, and not at each step", async () => {
    await page.evaluate(() => {
      const announced: string[] = [];
      const note = (records: MutationRecord[]) => {
        for (const { target } of records) {
          const text = target.textContent ?? "";
          if (text.includes("get another variation")) announced.push(text);
        }
      };
      const options = { subtree: true, childList: true, characterData: true };
      new MutationObserver(note).observe(document.body, options);
      Object.assign(window, { announced });
    });
    const steps = 20;
    const slider = page.getByRole("slider", { name: "blue" });
    for (let step = 0; step < steps; step += 1) await slider.press("ArrowRight");
    await page.getByText("0.2 % of these users get another variation when you save.").waitFor();
    const announced = await page.evaluate(
      () => (window as unknown as { announced: string[] }).announced,
    );
    // A slow machine can pause between two steps.
    expect(announced.length).toBeLessThan(steps / 2);
    await button("Discard").click();
  });

  it("gives the users of an application the shares that the dashboard shows", async () => {
    const flags = createClient({ baseUrl: given().gateway.url, serverKey: tenant.readerKey });
    await flags.ready({ timeoutMs: 9_000 });
    const ids = Array.from({ length: 1_000 }, (_, number) => `user-${number}`);
    const colors = ids.map((id) => flags.getString("checkout-color", { id }, "none"));
    await flags.close();
    const isBlue = (bucket: number) => bucket < 5_000 || bucket >= 8_975;
    const expected = ids.map((id) => isBlue(splitBucketOf("checkout-color", id)));
    expect(colors).toEqual(expected.map((blue) => (blue ? "#0000ff" : "#ff0000")));
  });

  it("gives a rule its own value, and counts percentages by company", async () => {
    await button("Percentages by user").click();
    await page.getByRole("combobox", { name: "Percentages by attribute" }).fill("company");
    await page.keyboard.press("Tab");
    await page.getByText("Percentages and splits select other users when you save.").waitFor();
    await button("Add rule").click();
    await page.getByRole("combobox", { name: "Attribute", exact: true }).fill("plan");
    await page.keyboard.press("Tab");
    await page.getByRole("textbox", { name: "Value", exact: true }).fill("pro");
    await choose(/They get/, /^red/);
    await page
      .getByText("red for users whose plan is pro; everybody else gets the application's default.")
      .first()
      .waitFor();
    await save();
    expect(await stored()).toMatchObject({
      bucket_by: "company",
      targeting_rules: [{ conditions: [{ attribute: "plan" }], serve: { variation: "red" } }],
    });
  });

  it("shows the value, the variation and the bucket of a user, also with unsaved changes", async () => {
    await choose(/They get/, "A split");
    await percentOf("blue").last().fill("100");
    await page.getByRole("textbox", { name: "User id" }).fill("user-1");
    await page.getByRole("combobox", { name: "Attribute 1" }).fill("plan");
    await page.keyboard.press("Tab");
    await page.getByRole("textbox", { name: "Value of attribute 1" }).fill("pro");
    await button("Add attribute").click();
    await page.getByRole("combobox", { name: "Attribute 2" }).fill("company");
    await page.keyboard.press("Tab");
    await page.getByRole("textbox", { name: "Value of attribute 2" }).fill("acme");
    await button("Try this user").click();
    const result = page.getByRole("region", { name: "Result" });
    await result.getByText('"#0000ff"').waitFor();
    await result.getByText(/^The user's bucket in the split is \d+ of 0 to 9999\./).waitFor();
    await result.getByText("which has the buckets 0 to 9999").waitFor();
    await expectNoSeriousViolations(page);
    await button("Discard").click();
  });

  it("moves the focus to a variation that is added, and to the button after a removal", async () => {
    await open("Variations");
    await button("Add variation").press("Enter");
    await variation(3).getByLabel("Key").and(page.locator(":focus")).waitFor();
    await variation(3).getByRole("button", { name: "Remove" }).press("Enter");
    expect(await focused()).toBe("Add variation");
  });

  it("changes values, and says which environments use a variation that was removed", async () => {
    await open("Variations");
    await variation(1).getByLabel("Value").fill("#0000cc");
    await variation(2).getByRole("button", { name: "Remove" }).click();
    await button("Save variations").click();
    await page
      .getByText(/Not saved\. Variations must keep red, which the flag uses in .*production/)
      .waitFor();
    await expectNoSeriousViolations(page);
    await button("Discard").click();
    await variation(1).getByLabel("Value").fill("#0000cc");
    await button("Save variations").click();
    await page.getByText("The variations of checkout-color are saved.").waitFor();
    expect((await flag()).variations[0]).toEqual({ key: "blue", value: "#0000cc" });
  });

  it("keeps two people's edits of different variations, and asks about the same one", async () => {
    const change = async (number: number, value: string) => {
      const { id, variations } = await flag();
      const changed = variations.with(number, { ...variations[number], value });
      await api(`flags/${id}`, "PATCH", { variations: changed });
    };
    await variation(1).getByLabel("Value").fill("#0000aa");
    await change(1, "#cc0000");
    const others = page.getByRole("list", { name: "Changes by others" });
    await others.getByText("#cc0000").waitFor();
    expect(await variation(1).getByLabel("Value").inputValue()).toBe("#0000aa");
    expect(await variation(2).getByLabel("Value").inputValue()).toBe("#cc0000");
    await change(0, "#000011");
    const conflict = page.getByRole("region", { name: "Conflict: blue" });
    await conflict.getByText("#000011").waitFor();
    expect(await button("Save variations").isDisabled()).toBe(true);
    await expectNoSeriousViolations(page);
    await button("Keep mine", conflict).click();
    await change(1, "#dd0000");
    await others.getByText("#dd0000").waitFor();
    await button("Save variations").click();
    await page.getByText("The variations of checkout-color are saved.").last().waitFor();
    await eventually(async () => {
      const values = (await flag()).variations.map(({ value }: { value: string }) => value);
      return values.join() === "#0000aa,#dd0000";
    });
  });

  it("keeps the text of a JSON object, and names the line of a mistake", async () => {
    const limits = '{"10":1.0,"2":{"deep":[1e-21]}}';
    const response = await fetch(`${given().gateway.url}/api/v1/flags`, {
      method: "POST",
      headers: { authorization: `Bearer ${tenant.serverKey}`, "content-type": "application/json" },
      body: `{"key":"limits","name":"Limits","value_type":"object","variations":[{"key":"small","value":${limits}}]}`,
    });
    expect(response.status).toBe(201);
    await page.goto(`${given().gateway.url}/flags/limits/variations`);
    await eventually(async () => (await linesIn(1)).includes('  "10": 1.0,'));
    const value = variation(1).getByLabel("Value");
    await value.fill('{\n  "10": 1.0\n  "2": 3\n}');
    await button("Save variations").click();
    await page.locator("p").getByText("Line 3, column 3: expected a comma or }.").waitFor();
    await variation(1).locator(".cm-lintRange-error").waitFor();
    await expectNoSeriousViolations(page);
    await value.fill('{"10": 2.50, "2": 3}');
    await button("Save variations").click();
    await page.getByText("The variations of limits are saved.").waitFor();
    const text = await fetch(`${given().gateway.url}/api/v1/flags?key=limits&include=values`, {
      headers: { authorization: `Bearer ${tenant.serverKey}` },
    });
    expect(await text.text()).toContain('"value":{"10":2.50,"2":3}');
  });

  it("edits an object with the keyboard, in an editor that the content security policy allows", async () => {
    const value = variation(1).getByLabel("Value");
    await variation(1).getByLabel("Name").focus();
    await page.keyboard.press("Tab");
    await value.and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Control+a");
    await page.keyboard.type('{"a":?');
    await variation(1).locator(".cm-lintRange-error").waitFor();
    expect(await page.getByRole("dialog").count()).toBe(0);
    const outline = () =>
      variation(1)
        .locator(".cm-focused")
        .evaluate((editor) => {
          const { outlineColor, outlineStyle } = getComputedStyle(editor);
          return [outlineStyle, outlineColor];
        });
    const transparent = ["solid", "rgba(0, 0, 0, 0)"];
    expect(await outline()).toEqual(transparent);
    await page.emulateMedia({ forcedColors: "active" });
    const forced = await outline();
    await page.emulateMedia({ forcedColors: null });
    expect(forced).not.toEqual(transparent);
    await page.keyboard.press("Tab");
    expect(await button("Remove Variation 1").and(page.locator(":focus")).count()).toBe(1);
    const mistake = "Line 1, column 6: expected a value.";
    await variation(1).locator("p").getByText(mistake).waitFor();
    expect(await value.getAttribute("aria-invalid")).toBe("true");
    await variation(1).locator(`#help:text-is("${mistake}")`).waitFor({ state: "attached" });
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Shift+Tab");
    await eventually(async () => {
      if ((await linesIn(1)).includes('  "10": 2.50,')) return true;
      // Keys that a slow machine receives far apart are undone one after another.
      await page.keyboard.press("Control+z");
      return false;
    });
    await eventually(() => button("Discard").isDisabled());
  });

  it("reaches the editor in the dialog with the keyboard, and asks before its text is lost", async () => {
    await page.goto(`${given().gateway.url}/flags`);
    await button("Create flag").click();
    await choose(/Value$/, "JSON object");
    const value = variation(1).getByLabel("Value");
    await value.waitFor();
    await variation(1).getByLabel("Name").focus();
    await page.keyboard.press("Tab");
    await value.and(page.locator(":focus")).waitFor();
    await page.keyboard.press("Enter");
    await page.keyboard.press("Tab");
    expect(await button("Remove Variation 1").and(page.locator(":focus")).count()).toBe(1);
    await page.keyboard.press("Shift+Tab");
    await value.and(page.locator(":focus")).waitFor();
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Escape");
    await button("Discard").click();
  });

  it("copies the percentages of a split to another environment, or the same users", async () => {
    const { id } = await flag();
    const target = `flags/${id}/environments/${staging.id}`;
    const { name } = (await api("me")).environments.find(
      (environment: { id: string }) => environment.id === staging.id,
    );
    await api(target, "PATCH", { serve: { variation: "red" } });
    await page.goto(`${given().gateway.url}/compare?from=production&to=${name}`);
    const copy = async (users: "same" | "least-moved") => {
      await page.getByRole("checkbox", { name: "Choose checkout-color" }).press("Space");
      await button(`Copy to ${name}`).click();
      const dialog = page.getByRole("dialog");
      if (users === "same")
        await dialog.getByRole("checkbox", { name: /Same users/ }).press("Space");
      await dialog
        .getByText(/to other users|blue 60.25 %, red 39.75 %/)
        .first()
        .waitFor();
      await button(/^Copy 1 flag/, dialog).click();
      await dialog.getByText("1 copied").waitFor();
      await button("Close", dialog).first().click();
    };
    await copy("least-moved");
    const { serve } = await api(target);
    expect(serve.split.map(({ weight }: { weight: number }) => weight)).toEqual([60.25, 39.75]);
    expect(serve.split[1].ranges).toEqual([[0, 3_975]]);
    await copy("same");
    expect((await api(target)).serve).toEqual((await stored()).serve);
  });

  it("restores what was served, with the users of that time", async () => {
    await page.goto(`${given().gateway.url}/flags/checkout-color/history`);
    const before = (await stored()).serve;
    const { id } = await flag();
    await api(`flags/${id}/environments/${tenant.environmentId}`, "PATCH", {
      serve: { variation: "red" },
    });
    const current = page.getByRole("listitem").filter({ hasText: "Current state" });
    await current.filter({ hasText: "becomes red" }).waitFor();
    await button(/^Restore this/)
      .first()
      .click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("blue 60.25 %, red 39.75 %").first().waitFor();
    await expectNoSeriousViolations(page);
    await button("Restore", dialog).click();
    await page.getByText("checkout-color is back to its state").waitFor();
    expect((await stored()).serve).toEqual(before);
  });

  it("asks before a change that an application's SDK does not support", async () => {
    const { id } = await api("flags", "POST", { key: "greeting", name: "Hi", enabled: true });
    const end = new Date();
    const start = new Date(end.getTime() - 60_000);
    await must(`${given().gateway.url}/api/v1/sdk/usage`, {
      ...{ method: "POST", key: tenant.readerKey },
      body: {
        period: { start: start.toISOString(), end: end.toISOString() },
        flags: { greeting: { true: 1 } },
        sdk: { name: "@example/sdk", version: "0.1.0", knows: [] },
      },
    });
    const { projectId, environmentId } = tenant;
    const readers = `projects/${projectId}/environments/${environmentId}/readers`;
    await eventually(async () =>
      (await api(readers)).readers.some(({ name }: { name: string }) => name === "@example/sdk"),
    );
    await page.goto(`${given().gateway.url}/flags/greeting`);
    await percentOf("Percentage of all users").fill("12.5");
    const dialog = page.getByRole("dialog");
    await page.route(`**/${readers}`, (route) => route.fulfill({ status: 400, body: "{}" }));
    await button("Save changes").click();
    await dialog.getByText(/could not read which SDKs/).waitFor();
    await button("Cancel", dialog).click();
    await page.unroute(`**/${readers}`);
    await button("Save changes").click();
    const warning = dialog.getByText(/Applications with .*@example\/sdk 0\.1\.0.* read flags/);
    await warning.waitFor();
    await expectNoSeriousViolations(page);
    await button("Cancel", dialog).click();
    const state = `flags/${id}/environments/${environmentId}`;
    expect(await api(state)).toMatchObject({ rollout_percentage: 100 });
    await button("Save changes").click();
    await button("Save", dialog).click();
    await page.getByText("greeting is saved in production.").waitFor();
    expect(await api(state)).toMatchObject({ rollout_percentage: 12.5 });
    await api(state, "PATCH", { rollout_percentage: 50 });
    await api(`flags/${id}/environments/${staging.id}`, "PATCH", { rollout_percentage: 33.3 });
    await page.goto(`${given().gateway.url}/compare?from=${staging.name}&to=production`);
    await page.getByRole("checkbox", { name: "Choose greeting" }).press("Space");
    await button("Copy to production").click();
    await warning.waitFor();
    await button("Cancel", dialog).click();
    await page.goto(`${given().gateway.url}/flags/greeting/history`);
    await button("Roll back…").click();
    await warning.waitFor();
    await button("Roll back", dialog).click();
    await page.getByText("greeting is back to its state").waitFor();
  });

  it("asks before the list or a schedule turns on a flag that an application's SDK does not support", async () => {
    await api("flags", "POST", { key: "by-company", name: "By company", bucket_by: "company" });
    const dialog = page.getByRole("dialog");
    const warning = dialog.getByText(/Applications with .*@example\/sdk 0\.1\.0.* read flags/);
    await page.goto(`${given().gateway.url}/flags?env=production`);
    const onInList = page.getByRole("switch", { name: "by-company in production" });
    await onInList.press("Space");
    await warning.waitFor();
    await button("Cancel", dialog).click();
    expect((await flag("by-company")).enabled).toBe(false);
    await page.goto(`${given().gateway.url}/flags/by-company/schedule?env=production`);
    await page.getByRole("spinbutton", { name: "month, Turn on at" }).focus();
    await page.keyboard.type("010120990900A");
    await button("Schedule").click();
    await warning.waitFor();
    await button("Schedule", dialog).click();
    await page.getByText("by-company is scheduled in production.").waitFor();
    await page.goto(`${given().gateway.url}/flags?env=production`);
    await onInList.press("Space");
    await button("Turn on", dialog).click();
    await page.getByText("by-company is on in production.").waitFor();
    await onInList.press("Space");
    await page.getByText("by-company is off in production.").waitFor();
  });

  it("asks before a copy turns on such a flag, also if the SDKs could not be read", async () => {
    const { id } = await flag("by-company");
    await api(`flags/${id}/environments/${staging.id}`, "PATCH", {
      ...{ enabled: true, bucket_by: "company" },
    });
    const dialog = page.getByRole("dialog");
    await page.route("**/readers", (route) => route.fulfill({ status: 400, body: "{}" }));
    await page.goto(`${given().gateway.url}/compare?from=${staging.name}&to=production`);
    await page.getByRole("checkbox", { name: "Choose by-company" }).press("Space");
    await button("Copy to production").click();
    await dialog.getByText(/could not read which SDKs/).waitFor();
    await expectNoSeriousViolations(page);
    await page.unroute("**/readers");
    await button("Copy 1 flag to production", dialog).click();
    await dialog.getByText("1 copied.").waitFor();
    await button("Close", dialog).last().click();
    expect((await flag("by-company")).enabled).toBe(true);
  });

  it("shows the evaluations of each variation", async () => {
    const variations = ["blue", "red"].map((key) => ({ key, value: key }));
    const counted = { key: "counted", name: "Counted", value_type: "string", variations };
    const { id } = await api("flags", "POST", counted);
    const end = new Date();
    const start = new Date(end.getTime() - 60_000);
    await must(`${given().gateway.url}/api/v1/sdk/usage`, {
      ...{ method: "POST", key: tenant.readerKey },
      body: {
        period: { start: start.toISOString(), end: end.toISOString() },
        flags: { counted: { variations: { blue: 610, red: 590 } } },
      },
    });
    await eventually(async () =>
      (await api(`flags/${id}/usage`)).environments.some(
        ({ variations = [] }: { variations?: object[] }) => variations.length === 2,
      ),
    );
    await page.goto(`${given().gateway.url}/flags/counted/settings`);
    const production = page.getByRole("row").filter({ hasText: "production" });
    await production.getByText("blue 610, red 590").waitFor();
  });

  it("lists the type and the served variations, and fits a narrow screen", async () => {
    await page.goto(`${given().gateway.url}/flags`);
    const row = page.getByRole("row").filter({ hasText: "checkout-color" });
    await row.getByText("Text", { exact: true }).waitFor();
    await row.getByText("blue 60.25 %, red 39.75 %, 1 rule").first().waitFor();
    await page.setViewportSize({ width: 360, height: 740 });
    const served = row.getByTitle("blue 60.25 %, red 39.75 %, 1 rule");
    const isCut = await served.evaluate(
      ({ clientHeight, scrollHeight, clientWidth, scrollWidth }) =>
        scrollHeight > clientHeight || scrollWidth > clientWidth,
    );
    expect(isCut).toBe(false);
    const long = (letter: string) => letter.repeat(64);
    const split = ["a", "b"].map((letter) => ({ variation: long(letter), weight: 50 }));
    await api("flags", "POST", {
      key: "long-variations",
      name: "Long variations",
      value_type: "number",
      variations: ["a", "b"].map((letter) => ({ key: long(letter), value: 1, name: long("n") })),
      enabled: true,
      serve: { split },
      targeting_rules: [{ conditions: [], serve: { split } }],
    });
    for (const path of [
      "flags",
      "flags/long-variations",
      "flags/long-variations/variations",
      "flags/long-variations/history",
      "compare?from=production",
    ]) {
      await page.goto(`${given().gateway.url}/${path}`);
      await page
        .getByText("aaaaaa")
        .or(page.getByLabel("Key"))
        .filter({ visible: true })
        .first()
        .waitFor();
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      expect([path, width]).toEqual([path, 360]);
      await expectNoSeriousViolations(page);
    }
    // The browser reports the conflict of the variation that is in use, and the list of SDKs that could not be read.
    expect(errors.filter((text) => !/409 \(Conflict\)|400 \(Bad Request\)/.test(text))).toEqual([]);
  });
}
