import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

const narrow = { width: 360, height: 740 };

/** Flags that require other flags: adding requirements, their chain, and the flags that a switch turns off too. */
export function describeRequirements(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const flags = new Map<string, string>();

  const api = (path: string, method = "GET", body?: object) =>
    must(`${given().gateway.url}/api/v1/${path}`, {
      ...{ method, key: tenant.serverKey },
      ...(body && { body }),
    });
  const statePath = (key: string) => `flags/${flags.get(key)}/environments/${tenant.environmentId}`;
  const button = (name: string | RegExp, within: Page | Locator = page): Locator =>
    within.getByRole("button", { name });
  const dialog = () => page.getByRole("dialog");
  const required = (number: number) => page.getByRole("group", { name: `Required flag ${number}` });
  const open = (path: string) => page.goto(`${given().gateway.url}${path}`);
  const save = async () => {
    await button("Save changes").click();
    await button("Save changes").waitFor({ state: "detached" });
  };
  const expectFits = async () => {
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    expect(width).toBe(narrow.width);
    await expectNoSeriousViolations(page);
  };
  const require = async (number: number, key: string) => {
    await button("Add required flag").press("Enter");
    const field = required(number).getByRole("combobox", { name: "Required flag" });
    await field.and(page.locator(":focus")).waitFor();
    await field.fill(key);
    // On a slow machine, the page still scrolls to the field, which closes the list. The arrow opens it again.
    await eventually(async () => {
      await page.keyboard.press("ArrowDown");
      return page.getByRole("option", { name: key }).isVisible();
    });
    await page.keyboard.press("Enter");
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Requirements" });
    for (const key of ["checkout", "payments", "billing"]) {
      const { id } = await api("flags", "POST", { key, name: key.toUpperCase() });
      flags.set(key, id);
      await api(statePath(key), "PATCH", { enabled: true });
    }
    const color = await api("flags", "POST", {
      ...{ key: "color", name: "Color", value_type: "string" },
      variations: [
        { key: "blue", value: "b" },
        { key: "red", value: "r" },
      ],
    });
    flags.set("color", color.id);
    page = await openDashboard(given, tenant, "/flags/payments");
  });
  afterAll(() => page?.close());

  it("requires another flag, chosen with the keyboard", async () => {
    await button("Add required flag").press("Enter");
    await button("Save changes").click();
    await page.getByText("Choose a flag.").waitFor();
    await button("Remove required flag 1").press("Enter");
    await button("Add required flag").and(page.locator(":focus")).waitFor();
    await require(1, "billing");
    await expectNoSeriousViolations(page);
    await save();
    const { requires } = await api(statePath("payments"));
    expect(requires).toEqual([{ flag: "billing", is: "on" }]);
  });

  it("requires variations of a flag with values", async () => {
    await require(2, "color");
    await button(/Required value/, required(2)).click();
    await page.getByRole("option", { name: "serves one of these variations" }).click();
    await required(2).getByText("red", { exact: true }).click();
    await save();
    const { requires } = await api(statePath("payments"));
    expect(requires[1]).toEqual({ flag: "color", is: ["blue", "red"] });
    await button("Remove required flag 2").click();
    await save();
  });

  it("shows the chain of required flags", async () => {
    await open("/flags/checkout");
    await require(1, "payments");
    const tree = page.getByRole("region", { name: "Chain of required flags" });
    await tree.getByText("flag billing is on").waitFor();
    await expectNoSeriousViolations(page);
    await save();
  });

  it("names the circle that a requirement would close", async () => {
    await open("/flags/billing");
    const dependents = page.getByRole("region", { name: "Flags that require this one" });
    await dependents.getByText("checkout requires payments, which requires billing").waitFor();
    await require(1, "checkout");
    await button("Save changes").click();
    await required(1)
      .getByText(/billing → checkout → payments → billing is a circle/)
      .waitFor();
    await expectNoSeriousViolations(page);
    await button("Discard").click();
  });

  it("names the flags that turn off too before the switch of the list turns one off", async () => {
    await open("/flags");
    const billing = page.getByRole("switch", { name: "billing in production" });
    await billing.press("Space");
    await dialog()
      .getByText(/Turning billing off also turns off 2 flags.*: checkout and payments\./)
      .waitFor();
    await expectNoSeriousViolations(page);
    await button("Cancel", dialog()).click();
    expect((await api(statePath("billing"))).enabled).toBe(true);
    await billing.press("Space");
    await button("Turn off", dialog()).click();
    await eventually(async () => !(await api(statePath("billing"))).enabled);
  });

  it("does not ask about a flag without dependents", async () => {
    await page.getByRole("switch", { name: "color in production" }).press("Space");
    await page.getByText("color is on in production.").waitFor();
  });

  it("names them before a draft is saved", async () => {
    await open("/flags/payments");
    await page.getByRole("switch", { name: "Flag in production" }).press("Space");
    await button("Save changes").click();
    await dialog()
      .getByText(/Turning payments off also turns off 1 flag.*: checkout\./)
      .waitFor();
    await button("Cancel", dialog()).click();
    await button("Discard").click();
  });

  describe("with the keyboard on a narrow screen", () => {
    const wide = { width: 1280, height: 720 };
    beforeAll(() => page.setViewportSize(narrow));
    afterAll(() => page.setViewportSize(wide));

    it("names them before a copy from another environment", async () => {
      await open("/compare?from=staging&to=production");
      await page.getByRole("checkbox", { name: "Choose payments" }).press("Space");
      await button(/^Copy to production$/).press("Enter");
      await dialog()
        .getByText(/Turning payments off also turns off 1 flag.*: checkout\./)
        .waitFor();
      await expectFits();
      await button("Cancel", dialog()).press("Enter");
    });

    it("names them before an older state is restored, and before a rollback", async () => {
      await api(statePath("billing"), "PATCH", { enabled: true });
      const warning = dialog().getByText(
        /Turning billing off also turns off 2 flags.*: checkout and payments\./,
      );
      await open("/flags/billing/history");
      await button(/^Restore this state/)
        .last()
        .press("Enter");
      await warning.waitFor();
      await expectFits();
      await button("Cancel", dialog()).press("Enter");
      await button("Roll back…").press("Enter");
      await warning.waitFor();
      await button("Roll back", dialog()).press("Enter");
      await page.getByText("billing is back to its state").waitFor();
      expect((await api(statePath("billing"))).enabled).toBe(false);
    });

    it("names them before a schedule that turns a flag off", async () => {
      await open("/flags/payments/schedule");
      await page.getByRole("spinbutton", { name: "month, Turn off at" }).focus();
      await page.keyboard.type("010120990900A");
      await button(/^Schedule$/).press("Enter");
      await dialog()
        .getByText(/Turning payments off also turns off 1 flag.*: checkout\./)
        .waitFor();
      await expectFits();
      await button("Schedule", dialog()).press("Enter");
      await page.getByText("payments is scheduled in production.").waitFor();
    });
  });

  it("explains for a user which flag of the chain decides", async () => {
    await open("/flags/checkout");
    await page.getByRole("textbox", { name: "User id" }).fill("user-1");
    await button("Try this user").click();
    const result = page.getByRole("region", { name: "Result", exact: true });
    await result
      .getByText("It requires that flag payments is on, and that flag is off for this user.")
      .waitFor();
    await result.getByText("payments is off: a flag that it requires has another value").waitFor();
    await result.getByText("billing is off: it is off for everyone").waitFor();
    await expectNoSeriousViolations(page);
  });

  it("requires a flag in a rule", async () => {
    await button("Add rule").click();
    await button("Add flag").press("Enter");
    const condition = page.getByRole("group", { name: "Rule 1, condition 1" });
    await condition.getByRole("combobox", { name: "Required flag" }).fill("billing");
    await page.keyboard.press("Tab");
    await page.getByText("On for users for whom flag billing is on.").first().waitFor();
    await save();
    const { targeting_rules: rules } = await api(statePath("checkout"));
    expect(rules[0].conditions).toEqual([{ flag: "billing", is: "on" }]);
  });

  it("keeps a required flag, and names the flags that require it", async () => {
    await open("/flags/billing/settings");
    await button("Delete flag").click();
    await dialog().getByRole("textbox").fill("billing");
    await button("Delete flag", dialog()).click();
    await dialog()
      .getByText(/is required by .*payments/)
      .waitFor();
    await expectNoSeriousViolations(page);
    await button("Cancel", dialog()).click();
  });

  it("describes the changes in the history", async () => {
    await open("/history");
    await page.getByText("changed the required flags of").first().waitFor();
  });

  it.each(["light", "dark"] as const)("fits a narrow screen in %s colors", async (colorScheme) => {
    await page.emulateMedia({ colorScheme });
    await page.setViewportSize(narrow);
    await open("/flags/checkout");
    await page.getByRole("region", { name: "Chain of required flags" }).waitFor();
    await expectFits();
  });
}
