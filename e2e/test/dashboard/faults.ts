import { eventually } from "@halyard/testing";
import { afterEach, beforeAll, beforeEach, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { killOne } from "../../src/system/replicas.ts";
import { awaitReady, type Replica, type StartReplica } from "../../src/system/system.ts";
import { addPerson, createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** Killed processes, a slow network, and two people making the same change at the same time. */
export function describeFaults(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let flagUrl: string;
  const key = "checkout";
  const url = () => given().gateway.url;
  const switchIn = (shown: Page) => shown.getByRole("switch", { name: `${key} in production` });
  const toggle = (shown = page) => switchIn(shown).press("Space");
  const showsEventually = (isOn: boolean, shown = page) =>
    eventually(async () => (await switchIn(shown).isChecked()) === isOn);
  const store = (enabled: boolean) =>
    must(flagUrl, { method: "PATCH", key: tenant.serverKey, body: { enabled } });
  const stored = async () => (await must(flagUrl, { key: tenant.serverKey })).enabled;
  const openList = async (serverKey = tenant.serverKey) => {
    const opened = await openDashboard(given, { serverKey });
    await switchIn(opened).waitFor();
    await opened.getByText("Live", { exact: true }).waitFor();
    return opened;
  };
  /** The content of the page, without the notices. */
  const main = () => page.getByRole("main");
  const follow = (name: string) => page.getByRole("link", { name, exact: true }).click();

  beforeAll(async () => {
    tenant = await createTenant(url(), { name: "Faults" });
    const flags = `${url()}/api/v1/flags`;
    const body = { key, name: "Checkout" };
    const { id } = await must(flags, { method: "POST", key: tenant.serverKey, body });
    flagUrl = `${flags}/${id}`;
  });
  beforeEach(async () => {
    await store(false);
    page = await openList();
  });
  afterEach(() => page.close());

  it("says that webhooks are unavailable, while the other pages work, and offers to try again", async () => {
    const { dispatchers, startDispatcher } = given().system;
    const restart = await killForNow(dispatchers, startDispatcher);
    try {
      await toggle();
      await page.getByText("checkout is on in production.").waitFor();
      await follow("Webhooks");
      const alert = main().getByRole("alert");
      await alert.getByText("The service is temporarily unavailable").waitFor();
      await alert.getByText("Try again in 1 s.").waitFor();
      await expectNoSeriousViolations(page);
    } finally {
      await restart();
    }
    await page.getByRole("button", { name: "Try again" }).click();
    await page.getByText("Web has no webhooks yet").waitFor();
  });

  it("says that the connection is lost while management is down, and continues after its restart", async () => {
    const { managements, startManagement } = given().system;
    let reloaded: Page;
    const restarts = [
      await killForNow(managements, startManagement),
      await killForNow(managements, startManagement),
    ];
    try {
      await page.getByText("What you see may be out of date").waitFor();
      await toggle();
      await page.getByText("The change of checkout is not confirmed.").waitFor();
      await showsEventually(false);
      await follow("API keys");
      await main().getByRole("button", { name: "Try again" }).waitFor();
      reloaded = await openDashboard(given, tenant);
      await reloaded.getByText("It is tried again.").waitFor();
    } finally {
      await Promise.all(restarts.map((restart) => restart()));
    }
    await page.getByText("Live", { exact: true }).waitFor();
    await main().getByText("In use here").first().waitFor();
    await follow("Flags");
    await store(true);
    await showsEventually(true);
    expect(await main().getByRole("alert").count()).toBe(0);
    await switchIn(reloaded).waitFor();
    await reloaded.close();
  });

  it("shows the stored state of a flag after the response to its toggle is lost", async () => {
    await page.route(isChange, async (route) => {
      if (route.request().method() !== "PATCH") return route.fallback();
      await route.fetch();
      await route.abort();
    });
    await toggle();
    await page.getByText("The change of checkout is not confirmed.").waitFor();
    await showsEventually(true);
    expect(await stored()).toBe(true);
  });

  it("shows progress while a page is slow", async () => {
    const slow = await hold(page, "GET", /\/api\/v1\/flags\?/);
    await page.reload();
    await page.getByRole("progressbar", { name: "Loading the flags" }).waitFor();
    slow.release();
    await switchIn(page).waitFor();
  });

  it("shows a toggle before its response, and sends it once if the key is pressed twice", async () => {
    const slow = await hold(page, "PATCH", isChange);
    await toggle();
    await eventually(() => slow.count() === 1);
    await toggle();
    expect(await switchIn(page).isChecked()).toBe(true);
    expect(await stored()).toBe(false);
    slow.release();
    await page.getByText("checkout is on in production.").waitFor();
    expect([slow.count(), await stored()]).toEqual([1, true]);
    await toggle();
    await page.getByText("checkout is off in production.").waitFor();
  });

  it("rejects the second of two toggles, and shows both people the stored state", async () => {
    const hers = await openList(await addPerson(url(), tenant, "grace@example.com"));
    const slow = await hold(hers, "PATCH", isChange);
    await toggle(hers);
    await eventually(() => slow.count() === 1);
    await toggle();
    await page.getByText("checkout is on in production.").waitFor();
    await toggle();
    await page.getByText("checkout is off in production.").waitFor();
    slow.release();
    await hers.getByText("Someone else changed checkout first.").waitFor();
    await Promise.all([showsEventually(false, hers), showsEventually(false)]);
    expect(await stored()).toBe(false);
    await hers.close();
  });

  it("offers an environment_only key only what it may do", async () => {
    const limited = await openList(tenant.environmentOnlyKey);
    await limited.getByRole("button", { name: "Environment" }).click();
    expect(await limited.getByRole("option").allInnerTexts()).toEqual(["production"]);
    await limited.keyboard.press("Escape");
    expect(await limited.getByRole("link", { name: "Webhooks" }).count()).toBe(0);
    await limited.getByRole("link", { name: key }).click();
    await limited.getByRole("link", { name: "Settings" }).click();
    await limited.getByText("Your key changes only one environment.").waitFor();
    expect(await limited.getByRole("button", { name: "Delete flag" }).count()).toBe(0);
    await limited.goto(`${url()}/webhooks?env=production`);
    await limited.getByText("This key cannot use webhooks").waitFor();
    await limited.close();
  });
}

/** Changes of a flag's state. */
const isChange = /\/api\/v1\/flags\/[^/]+\/environments\/[^/]+$/;

/** Kills a process. Returns a function that starts its successor on the same address. */
async function killForNow(inService: Replica[], start: StartReplica): Promise<() => Promise<void>> {
  const { url } = await killOne(inService);
  return async () => {
    const process = await start({ port: new URL(url).port });
    await awaitReady({ name: "the successor", process });
  };
}

/** Holds the requests of a page, as a slow network does, until they are released. */
async function hold(page: Page, method: string, url: RegExp) {
  const { promise: released, resolve: release } = Promise.withResolvers<void>();
  let count = 0;
  await page.route(url, async (route) => {
    if (route.request().method() !== method) return route.fallback();
    count += 1;
    await released;
    await route.continue();
  });
  return {
    /** Number of requests so far. */
    count: () => count,
    release,
  };
}
