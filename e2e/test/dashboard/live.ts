import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page, Request } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import {
  addPerson,
  createTenant,
  must,
  operatorToken,
  type Tenant,
} from "../../src/system/tenancy.ts";

/** Two people in two browsers, and a network that breaks. */
export function describeLive(given: () => DashboardSystem): void {
  let ada: Tenant;
  let hers: Page;
  const url = () => given().gateway.url;

  beforeAll(async () => {
    ada = await createTenant(url(), { name: "Watched" });
    const grace = await addPerson(url(), ada, "grace@example.com");
    await must(`${url()}/api/v1/flags`, {
      method: "POST",
      key: ada.serverKey,
      body: { key: "checkout", name: "Checkout" },
    });
    hers = await openDashboard(given, { serverKey: grace });
    await hers.getByText("Live", { exact: true }).waitFor();
  });
  afterAll(() => hers?.close());

  it("shows another person's change without a reload, with the author", async () => {
    const his = await openDashboard(given, ada);
    await his.getByRole("switch", { name: "checkout in production" }).press("Space");
    await hers.getByText("ada@example.com turned checkout on in production").waitFor();
    const herSwitch = hers.getByRole("switch", { name: "checkout in production" });
    await eventually(() => herSwitch.isChecked());
    await his.close();
  });

  it("shows a flag that another person creates", async () => {
    await must(`${url()}/api/v1/flags`, {
      method: "POST",
      key: ada.serverKey,
      body: { key: "created-elsewhere", name: "Created elsewhere" },
    });
    await hers.getByRole("link", { name: "created-elsewhere" }).waitFor();
  });

  it("reads a burst of changes at most once a second, and shows the last one", async () => {
    const { flags } = await must(`${url()}/api/v1/flags?key=checkout`, { key: ada.serverKey });
    const state = `${url()}/api/v1/flags/${flags[0].id}/environments/${ada.environmentId}`;
    const reads: number[] = [];
    const record = (request: Request) => {
      if (request.url().includes("/api/v1/flags?key=checkout")) reads.push(performance.now());
    };
    hers.on("request", record);
    const start = performance.now();
    for (let change = 1; change <= 60 || performance.now() - start < 3_000; change += 1) {
      const body = { rollout_percentage: change % 50, enabled: change % 2 === 0 };
      await must(state, { method: "PATCH", key: ada.serverKey, body });
    }
    await must(state, {
      method: "PATCH",
      key: ada.serverKey,
      body: { enabled: true, rollout_percentage: 77 },
    });
    await hers.getByRole("row").filter({ hasText: "checkout" }).getByText("77 %").waitFor();
    hers.off("request", record);
    const seconds = (performance.now() - start) / 1_000;
    expect(reads.length).toBeLessThanOrEqual(Math.ceil(seconds) + 1);
  });

  it("groups notices about changes by others, and mutes them in one tab", async () => {
    const create = (key: string) =>
      must(`${url()}/api/v1/flags`, {
        ...{ method: "POST", key: ada.serverKey, body: { key, name: key } },
      });
    await Promise.all(["one", "two", "three", "four", "five"].map(create));
    await hers.getByText(/^\d flags were changed by ada@example\.com$/).waitFor();
    const mute = hers.getByRole("button", { name: "Mute notices about changes by others" });
    await mute.press("Enter");
    expect(await mute.getAttribute("aria-pressed")).toBe("true");
    await create("silent");
    await hers.getByRole("link", { name: "silent" }).waitFor();
    await expectNoSeriousViolations(hers);
    const dismiss = hers.getByRole("button", { name: "Dismiss" });
    await eventually(async () => {
      if ((await dismiss.count()) > 0) await dismiss.first().click();
      return (await dismiss.count()) === 0;
    });
    await mute.press("Enter");
    await create("announced");
    // On a busy machine, one of the five flags can share this notice.
    await hers.getByText(/created announced$|flags were changed by/).waitFor();
    expect(await hers.getByText(/created silent/).count()).toBe(0);
  });

  it("shows a key of one environment the flags that others create, rename and delete", async () => {
    const limited = await openDashboard(given, { serverKey: ada.environmentOnlyKey });
    await limited.getByText("Live", { exact: true }).waitFor();
    const flags = `${url()}/api/v1/flags`;
    const byOthers = (target: string, method: string, body?: object) =>
      must(target, { method, key: ada.otherServerKey, ...(body && { body }) });
    const { id } = await byOthers(flags, "POST", { key: "made-in-staging", name: "Before" });
    const row = limited.getByRole("row").filter({ hasText: "made-in-staging" });
    await row.getByText("Before").waitFor();
    await byOthers(`${flags}/${id}`, "PATCH", { name: "After" });
    await row.getByText("After").waitFor();
    await byOthers(`${flags}/${id}`, "DELETE");
    await row.waitFor({ state: "detached" });
    await limited.close();
  });

  it("lets people switch flags in an environment that the operator creates", async () => {
    const named = hers.waitForResponse(`${url()}/api/v1/me`);
    await must(`${url()}/api/v1/projects/${ada.projectId}/environments`, {
      ...{ method: "POST", key: operatorToken, body: { name: "canary" } },
    });
    await named;
    await hers.getByRole("button", { name: "Environment" }).click();
    await hers.getByRole("option", { name: "canary" }).click();
    const canary = hers.getByRole("switch", { name: "checkout in canary" });
    await eventually(() => canary.isEnabled());
    await hers.getByRole("button", { name: "Environment" }).click();
    await hers.getByRole("option", { name: "production" }).click();
    await hers.getByRole("switch", { name: "checkout in production" }).waitFor();
  });

  it("keeps no connection in a hidden tab, and catches up when the tab is shown", async () => {
    const show = (isShown: boolean) =>
      hers.evaluate((hidden) => {
        Object.defineProperty(document, "hidden", { configurable: true, value: hidden });
        document.dispatchEvent(new Event("visibilitychange"));
      }, !isShown);
    const isStream = (request: Request) => request.url().endsWith("/changes/stream");
    const closed = hers.waitForEvent("requestfailed", isStream);
    await show(false);
    await closed;
    await must(`${url()}/api/v1/flags`, {
      ...{ method: "POST", key: ada.serverKey },
      body: { key: "created-while-hidden", name: "Created while hidden" },
    });
    const opened = hers.waitForRequest(isStream);
    await show(true);
    await opened;
    await hers.getByRole("link", { name: "created-while-hidden" }).waitFor();
    await hers.getByText("Live", { exact: true }).waitFor();
  });

  it("says that the connection is lost, and catches up after a reconnection", async () => {
    await hers.context().setOffline(true);
    try {
      await hers.getByText("Halyard cannot be reached.").first().waitFor();
      await must(`${url()}/api/v1/flags`, {
        method: "POST",
        key: ada.serverKey,
        body: { key: "created-meanwhile", name: "Created meanwhile" },
      });
    } finally {
      await hers.context().setOffline(false);
    }
    await hers.getByRole("link", { name: "created-meanwhile" }).waitFor();
    await hers.getByText("Live", { exact: true }).waitFor();
  });
}
