import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** Processor time that the scripts of one interaction may use. The goal is a frame of 16 ms; the rest is tolerance. */
const maxScriptMs = 50;
/** Interactions of which the median is compared with the bound. */
const repeats = 9;

/** The rule editor with the largest states that the API accepts. */
export function describeLargeContent(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const create = (path: string, body: object) =>
    must(`${given().gateway.url}/api/v1/${path}`, { method: "POST", key: tenant.serverKey, body });
  const rule = (index: number) => page.getByRole("button", { name: new RegExp(`^Rule ${index}:`) });
  const nameField = () => page.getByRole("textbox", { name: "Name (optional)" });

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Large" });
    const equals = (index: number) => ({
      attribute: "team",
      operator: "equals",
      value: `t${index}`,
    });
    await create("flags", {
      ...{ key: "many-rules", name: "Many rules", enabled: true },
      targeting_rules: Array.from({ length: 100 }, (_, index) => ({ conditions: [equals(index)] })),
    });
    const value = Array.from({ length: 1_000 }, (_, index) => `user-${index}`);
    await create("flags", {
      ...{ key: "many-values", name: "Many values", enabled: true },
      targeting_rules: [{ conditions: [{ attribute: "id", operator: "in", value }] }],
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

  it("types beside 1,000 values without delay", async () => {
    await page.close();
    page = await openDashboard(given, tenant, "/flags/many-values");
    await rule(1).click();
    await nameField().focus();
    const ms = await scriptMsOf("x");
    expect(ms).toBeLessThan(maxScriptMs);
  });
}
