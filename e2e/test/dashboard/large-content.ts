import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

/** Processor time that the scripts of one interaction may use. The goal is a frame of 16 ms; the rest is tolerance. */
const maxScriptMs = 50;
/** Number of measured interactions. The bound applies to their median. */
const repeats = 9;

const environments = 40;
const numbers = Array.from({ length: 1_000 }, (_, index) => index);

/** Flags with the largest states that the API accepts, and a project with many environments. */
export function describeLargeContent(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const create = (path: string, body: object) =>
    must(`${given().gateway.url}/api/v1/${path}`, { method: "POST", key: tenant.serverKey, body });
  const rule = (index: number) => page.getByRole("button", { name: new RegExp(`^Rule ${index}:`) });
  const nameField = () => page.getByRole("textbox", { name: "Name (optional)" });
  const values = () => page.getByRole("textbox", { name: "Values, one per line" });

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Large" });
    const path = `projects/${tenant.projectId}/environments`;
    for (let index = 3; index <= environments; index += 1)
      await must(`${given().gateway.url}/api/v1/${path}`, {
        ...{ method: "POST", key: operatorToken, body: { name: `region-${index}` } },
      });
    const equals = (index: number) => ({
      attribute: "team",
      operator: "equals",
      value: `t${index}`,
    });
    await create("flags", {
      ...{ key: "many-rules", name: "Many rules", enabled: true },
      targeting_rules: Array.from({ length: 100 }, (_, index) => ({ conditions: [equals(index)] })),
    });
    await create("flags", {
      ...{ key: "many-values", name: "Many values", enabled: true },
      targeting_rules: [{ conditions: [{ attribute: "id", operator: "in", value: numbers }] }],
    });
    page = await openDashboard(given, tenant, "/flags/many-rules");
  });
  afterAll(() => page?.close());

  /** Returns the median of the processor time that the page's scripts use after each press of a key. */
  async function scriptMsOf(key: string): Promise<number> {
    const session = await page.context().newCDPSession(page);
    await session.send("Performance.enable", { timeDomain: "threadTicks" });
    const readMs = async () => {
      const { metrics } = await session.send("Performance.getMetrics");
      return 1_000 * (metrics.find(({ name }) => name === "ScriptDuration")?.value ?? 0);
    };
    const times: number[] = [];
    for (let index = 0; index < repeats; index += 1) {
      const before = await readMs();
      await page.keyboard.press(key);
      await page.evaluate(
        () => new Promise((resolve) => requestAnimationFrame(() => setTimeout(resolve))),
      );
      times.push((await readMs()) - before);
    }
    await session.detach();
    return times.toSorted((a, b) => a - b)[Math.floor(repeats / 2)] as number;
  }

  it("types into a rule among 100 without delay", async () => {
    await rule(7).click();
    await nameField().focus();
    const ms = await scriptMsOf("x");
    expect(await nameField().inputValue()).toBe("x".repeat(repeats));
    expect(ms).toBeLessThan(maxScriptMs);
  });

  it("types a value of a rule among 100 without delay", async () => {
    await page.getByRole("textbox", { name: "Value", exact: true }).focus();
    const ms = await scriptMsOf("x");
    expect(ms).toBeLessThan(maxScriptMs);
  });

  it("moves the slider of a flag with 100 rules without delay", async () => {
    await page.getByRole("slider", { name: "Percentage of the flag" }).focus();
    const ms = await scriptMsOf("ArrowLeft");
    expect(ms).toBeLessThan(maxScriptMs);
  });

  it("types beside and into 1,000 values without delay", async () => {
    await page.goto(`${given().gateway.url}/flags/many-values`);
    await rule(1).click();
    await nameField().focus();
    expect(await scriptMsOf("x")).toBeLessThan(maxScriptMs);
    await values().focus();
    expect(await scriptMsOf("x")).toBeLessThan(maxScriptMs);
  });

  it("edits many values as lines with a count, and keeps the others as they are", async () => {
    const lines = ["first", "", " second ", ...numbers.slice(0, 900), "first"].join("\n");
    await values().fill(`${lines}\n`);
    await page.getByText("902 values, one per line").waitFor();
    expect(await values().inputValue()).toBe(`${lines}\n`);
    await expectNoSeriousViolations(page);
    await page.getByRole("button", { name: "Save changes" }).click();
    await page.getByRole("button", { name: "Save changes" }).waitFor({ state: "detached" });
    const { flags } = await must(`${given().gateway.url}/api/v1/flags?key=many-values`, {
      key: tenant.serverKey,
    });
    const [saved] = flags[0].targeting_rules[0].conditions;
    expect(saved.value).toEqual(["first", "second", ...numbers.slice(0, 900)]);
    await values().fill("one\ntwo");
    await page.getByText("2 values, one per line").waitFor();
    await page.getByRole("button", { name: "Discard" }).click();
    await page.getByText("902 values, one per line").waitFor();
  });

  it("turns values into lines when many are pasted, and keeps the focus", async () => {
    await rule(1).waitFor();
    await page.getByRole("button", { name: "Add rule" }).click();
    const added = page.getByRole("group", { name: "Rule 2, condition 1" });
    await added.getByRole("button", { name: /Operator/ }).click();
    await page.getByRole("option", { name: "is one of" }).click();
    await added.getByRole("textbox", { name: "Value" }).fill(`${numbers.slice(0, 60).join(",")},`);
    await added.getByText("60 values, one per line").waitFor();
    const focused = () => page.evaluate(() => document.activeElement?.tagName);
    expect(await focused()).toBe("TEXTAREA");
    await page.getByRole("button", { name: "Discard" }).click();
  });

  it("shows how many environments a row leaves out, and all of them on request", async () => {
    await page.goto(`${given().gateway.url}/flags`);
    const more = page.getByRole("button", {
      name: `+${environments - 4} environments of many-rules`,
    });
    await more.focus();
    for (const width of [1_280, 980]) {
      await page.setViewportSize({ width, height: 720 });
      const [cell, inside] = [await more.locator("..").boundingBox(), await more.boundingBox()];
      const endOf = (box = cell) => (box?.x ?? 0) + (box?.width ?? 0);
      expect(endOf(inside)).toBeLessThanOrEqual(endOf());
      // A text that is clipped is not in reach of the pointer.
      await more.click({ trial: true });
    }
    expect(await more.innerText()).toBe(`+${environments - 4}`);
    await page.keyboard.press("Enter");
    const dialog = page.getByRole("dialog", { name: "many-rules in all environments" });
    expect(await dialog.getByRole("row").count()).toBe(1 + environments);
    await dialog.getByRole("row", { name: `region-${environments} Off` }).waitFor();
    await expectNoSeriousViolations(page);
    await page.keyboard.press("Escape");
    await dialog.waitFor({ state: "detached" });
    expect(await more.evaluate((button) => button === document.activeElement)).toBe(true);
  });
}
