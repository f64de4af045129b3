import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page, Route } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** Time until a change is due that a test waits for. */
const soonMs = 2_000;

/** Schedules of one flag and of the project, by a person in Berlin. */
export function describeSchedules(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const flags = new Map<string, string>();
  const api = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const scheduleUrl = (key: string) =>
    api(`flags/${flags.get(key)}/environments/${tenant.environmentId}/schedule`);
  const schedule = (key: string, body: object) =>
    must(scheduleUrl(key), { method: "POST", key: tenant.serverKey, body });
  const read = (key: string) => must(scheduleUrl(key), { key: tenant.serverKey });

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Schedules" });
    for (const key of ["checkout", "search", "lunch-offer", "gift-cards"]) {
      const body = { key, name: key };
      const created = await must(api("flags"), { method: "POST", key: tenant.serverKey, body });
      flags.set(key, created.id);
    }
    page = await openDashboard(given, tenant, "/schedules");
    const devtools = await page.context().newCDPSession(page);
    await devtools.send("Emulation.setTimezoneOverride", { timezoneId: "Europe/Berlin" });
    await page.reload();
  });
  afterAll(() => page?.close());

  const open = (key: string) => page.goto(`${given().gateway.url}/flags/${key}/schedule`);

  /** Types a time into the parts of a field, in the order of the English of the United States. */
  async function enter(label: string, digits: string): Promise<void> {
    await page.getByRole("spinbutton", { name: `month, ${label}` }).focus();
    await page.keyboard.type(digits);
  }

  it("explain how to create the first one", async () => {
    await page.getByRole("heading", { name: "Nothing is scheduled" }).waitFor();
    await page.getByText("curl").first().waitFor();
    await expectNoSeriousViolations(page);
  });

  it("show local time and UTC while a window is entered with the keyboard", async () => {
    await open("checkout");
    await enter("Turn on at", "010120990900A");
    await enter("Turn off at", "010120990600P");
    await page
      .getByText("On from Thu, Jan 1, 2099, 9:00 AM to 6:00 PM, your time (8:00 AM–5:00 PM UTC)")
      .waitFor();
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Scheduled in production" }).waitFor();
    expect(await read("checkout")).toMatchObject({
      status: "pending",
      enable_at: "2099-01-01T08:00:00.000Z",
      disable_at: "2099-01-01T17:00:00.000Z",
    });
    await page.reload();
    await page.getByRole("heading", { name: "Scheduled in production" }).waitFor();
    await expectNoSeriousViolations(page);
  });

  it("explain a time that does not exist because clocks go forward", async () => {
    await open("search");
    await enter("Turn on at", "032920990230A");
    await page.getByText("Clocks go forward over the time that you entered, so 3:30 AM").waitFor();
    await page.getByText("On from Sun, Mar 29, 2099, 3:30 AM, your time (1:30 AM UTC)").waitFor();
  });

  it("let people choose between two times that are equal because clocks go back", async () => {
    await enter("Turn on at", "102520990230A");
    await page.getByText("your time (12:30 AM UTC)").waitFor();
    await page.getByRole("button", { name: "this time comes twice" }).click();
    await page.getByRole("option", { name: "The second time, 1:30 AM UTC" }).click();
    await page.getByText("On from Sun, Oct 25, 2099, 2:30 AM, your time (1:30 AM UTC)").waitFor();
    await expectNoSeriousViolations(page);
  });

  it("reject times in the past, and half of a time, in place", async () => {
    const save = page.getByRole("button", { name: "Schedule", exact: true });
    await enter("Turn off at", "010120200900A");
    await page.getByText("This time has passed.").waitFor();
    expect(await save.isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Remove: Turn off at" }).click();
    await enter("Turn off at", "0101");
    await page.getByRole("spinbutton", { name: "month, Turn on at" }).focus();
    await page.getByText("Enter the date and the time, or remove both.").waitFor();
    expect(await save.isDisabled()).toBe(true);
    await page.getByRole("button", { name: "Remove: Turn off at" }).click();
    await eventually(async () => !(await save.isDisabled()));
  });

  it("by another person keep the entered times, and are replaced only after a warning", async () => {
    await schedule("search", { enable_at: "2098-06-01T10:00:00Z" });
    await page.getByText("This replaces the current schedule:").waitFor();
    await page.getByText("On from Sun, Oct 25, 2099, 2:30 AM, your time (1:30 AM UTC)").waitFor();
    await page.getByRole("button", { name: "Replace schedule" }).click();
    await page.getByRole("heading", { name: "Past schedules" }).waitFor();
    expect((await read("search")).enable_at).toBe("2099-10-25T01:30:00.000Z");
  });

  it("are not overwritten when they changed without notice", async () => {
    // Without the stream of changes, the page does not learn of the other schedule.
    await page.route("**/changes/stream", (route) => route.abort());
    await open("lunch-offer");
    await enter("Turn on at", "010120990900A");
    await schedule("lunch-offer", { enable_at: "2098-06-01T10:00:00Z" });
    await page.getByRole("button", { name: "Schedule", exact: true }).click();
    await page.getByText("Someone else changed this schedule first.").waitFor();
    await page.getByText("On from Thu, Jan 1, 2099, 9:00 AM").waitFor();
    expect((await read("lunch-offer")).enable_at).toBe("2098-06-01T10:00:00.000Z");
    await page.unroute("**/changes/stream");
  });

  it("by another person keep a time that is only partly entered", async () => {
    await open("gift-cards");
    await enter("Turn on at", "0201");
    await schedule("gift-cards", { enable_at: "2098-06-01T10:00:00Z" });
    await page.getByText("This replaces the current schedule:").waitFor();
    await page.keyboard.type("20990900A");
    await page.getByText("On from Sun, Feb 1, 2099, 9:00 AM").waitFor();
    await page.getByRole("button", { name: "Cancel" }).click();
    await page.getByRole("button", { name: "Replace", exact: true }).waitFor();
  });

  it("whose response was lost are not reported as set after another person replaced them", async () => {
    const loseResponse = async (route: Route) => {
      await route.fetch();
      await route.abort();
    };
    const replace = page.getByRole("button", { name: "Replace schedule" });
    await page.getByRole("button", { name: "Replace", exact: true }).click();
    await enter("Turn on at", "020120990900A");
    await page.route("**/schedule", loseResponse, { times: 1 });
    await replace.click();
    await page.getByText("Halyard cannot be reached.").waitFor();
    await schedule("gift-cards", { enable_at: "2098-07-01T10:00:00Z" });
    await page.getByText("Jul 1, 2098").first().waitFor();
    await replace.click();
    await page.getByText("Someone else changed this schedule first.").waitFor();
    expect((await read("gift-cards")).enable_at).toBe("2098-07-01T10:00:00.000Z");
    await replace.click();
    await page.getByText("gift-cards is scheduled in production.").waitFor();
    expect((await read("gift-cards")).enable_at).toBe("2099-02-01T08:00:00.000Z");
  });

  it("of all flags form a timeline by day, and can be cleared there", async () => {
    await page.goto(`${given().gateway.url}/schedules`);
    const day = page.getByRole("list", { name: "Thu, Jan 1, 2099" });
    await day.getByText("9:00 AM").waitFor();
    await day.getByText("8:00 AM UTC").waitFor();
    await eventually(async () => (await day.getByRole("link", { name: "checkout" }).count()) === 2);
    await expectNoSeriousViolations(page);
    await day
      .getByRole("button", { name: "Clear the schedule of checkout in production" })
      .first()
      .press("Enter");
    await page
      .getByRole("dialog")
      .getByText("On from Thu, Jan 1, 2099, 9:00 AM to 6:00 PM")
      .waitFor();
    await page.getByRole("button", { name: "Clear schedule" }).click();
    await day.waitFor({ state: "detached" });
    expect((await read("checkout")).status).toBe("cancelled");
    const section = page.getByRole("region", { name: "Coming" });
    await eventually(() =>
      section.evaluate((element) => element.parentElement?.contains(document.activeElement)),
    );
  });

  it("of a flag with values say what it serves while it is on and while it is off", async () => {
    const created = await must(api("flags"), {
      ...{ method: "POST", key: tenant.serverKey },
      body: {
        ...{ key: "color", name: "Color", value_type: "string", off_variation: "grey" },
        variations: ["blue", "red", "grey"].map((key) => ({ key, value: key })),
        serve: { split: ["blue", "red"].map((variation) => ({ variation, weight: 50 })) },
      },
    });
    flags.set("color", created.id);
    await schedule("color", { enable_at: "2099-01-01T08:00:00Z" });
    await open("color");
    await page.getByText("On: blue 50 %, red 50 %. Off: everybody gets grey.").waitFor();
    await page.goto(`${given().gateway.url}/schedules`);
  });

  it("show how late a change was as soon as it is applied", async () => {
    await schedule("checkout", { enable_at: new Date(Date.now() + soonMs).toISOString() });
    const done = page.getByRole("region", { name: "Recently done" });
    await done.getByText("Applied").first().waitFor();
    await done
      .getByText(/\d m?s late/)
      .first()
      .waitFor();
  });
}
