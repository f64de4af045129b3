import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { addPerson, createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** Ada and Grace edit the same webhook and the same schedule at the same time. */
export function describeTwoPeople(given: () => DashboardSystem): void {
  let ada: Tenant;
  let hers: Page;
  let graces: Page;
  let webhookUrl: string;
  let scheduleUrl: string;
  const ask = (url: string, method = "GET", body?: object) =>
    must(url, { method, key: ada.serverKey, ...(body && { body }) });
  const button = (page: Page, name: string) => page.getByRole("button", { name, exact: true });
  const field = (page: Page, name: string) => page.getByRole("textbox", { name, exact: true });
  const notice = () => hers.getByText("Someone changed this webhook first");

  beforeAll(async () => {
    const api = `${given().gateway.url}/api/v1`;
    ada = await createTenant(given().gateway.url, { name: "Two people" });
    const grace = await addPerson(given().gateway.url, ada, "grace@example.com");
    const flag = await ask(`${api}/flags`, "POST", { key: "checkout", name: "Checkout" });
    scheduleUrl = `${api}/flags/${flag.id}/environments/${ada.environmentId}/schedule`;
    const { id } = await ask(`${api}/projects/${ada.projectId}/webhooks`, "POST", {
      name: "Chat",
      url: "http://127.0.0.1:9009/hooks",
      events: ["flag.toggled"],
      secret: "whisper",
    });
    webhookUrl = `${api}/projects/${ada.projectId}/webhooks/${id}`;
    hers = await openDashboard(given, ada, `/webhooks/${id}`);
    graces = await openDashboard(given, { serverKey: grace }, `/webhooks/${id}`);
  });
  afterAll(() => Promise.all([hers?.close(), graces?.close()]));

  async function confirmCopied(page: Page): Promise<void> {
    await page.getByRole("checkbox", { name: "I have copied the secret" }).press("Space");
    await page.getByRole("dialog").getByText("Close", { exact: true }).click();
  }

  /** Grace opens the settings, and saves them while Ada has them open. */
  async function graceSaves(name: string, value: string): Promise<void> {
    await button(graces, "Edit").click();
    await field(graces, name).fill(value);
    await button(graces, "Save").click();
    await graces.getByText("is saved.").last().waitFor();
    await graces.getByRole("dialog").waitFor({ state: "detached" });
  }

  describe("of a webhook", () => {
    it("keeps the edit of the first, asks the second, and does not lose what was typed", async () => {
      await button(hers, "Edit").click();
      await field(hers, "URL").fill("http://127.0.0.1:9009/adas");
      await graceSaves("URL", "http://127.0.0.1:9009/graces");
      await button(hers, "Save").click();
      await notice().waitFor();
      await hers
        .getByRole("dialog")
        .getByText("grace@example.com changed the URL of the webhook Chat")
        .waitFor();
      await hers.getByText("Now URL: http://127.0.0.1:9009/graces").waitFor();
      await expectNoSeriousViolations(hers);
      expect(await field(hers, "URL").inputValue()).toBe("http://127.0.0.1:9009/adas");
      expect((await ask(webhookUrl)).url).toBe("http://127.0.0.1:9009/graces");
      await button(hers, "Save anyway").click();
      await hers.getByText("Chat is saved.").waitFor();
      expect((await ask(webhookUrl)).url).toBe("http://127.0.0.1:9009/adas");
    });

    it("lets the second take the values of the first", async () => {
      await button(hers, "Edit").click();
      await field(hers, "URL").fill("http://127.0.0.1:9009/hers");
      await graceSaves("URL", "http://127.0.0.1:9009/theirs");
      await button(hers, "Save").click();
      await button(hers, "Take theirs").click();
      expect(await field(hers, "URL").inputValue()).toBe("http://127.0.0.1:9009/theirs");
      await button(hers, "Cancel").click();
      expect((await ask(webhookUrl)).url).toBe("http://127.0.0.1:9009/theirs");
    });

    it("keeps both edits of different fields", async () => {
      await button(hers, "Edit").click();
      await field(hers, "URL").fill("http://127.0.0.1:9009/both");
      await graceSaves("Name", "Team chat");
      await button(hers, "Save").click();
      await hers.getByText("Team chat is saved.").waitFor();
      expect(await ask(webhookUrl)).toMatchObject({
        name: "Team chat",
        url: "http://127.0.0.1:9009/both",
      });
    });

    it("does not rotate a secret that another person has rotated, until confirmed", async () => {
      await button(hers, "Rotate the secret").click();
      const generated = await hers.getByText(/^whsec_/).innerText();
      await button(graces, "Rotate the secret").click();
      await graces.getByText(/^whsec_/).waitFor();
      await button(graces, "Rotate the secret").last().click();
      await graces.getByText("are signed with the new secret.").waitFor();
      await confirmCopied(graces);
      const { version } = await ask(webhookUrl);
      await button(hers, "Rotate the secret").last().click();
      await hers.getByText("grace@example.com changed the secret of the webhook").waitFor();
      await expectNoSeriousViolations(hers);
      expect((await ask(webhookUrl)).version).toBe(version);
      expect(await hers.getByText(/^whsec_/).innerText()).toBe(generated);
      await button(hers, "Rotate the secret").last().click();
      await hers.getByText("are signed with the new secret.").waitFor();
      await confirmCopied(hers);
      expect((await ask(webhookUrl)).version).toBe(version + 1);
    });

    it("does not disable a changed webhook, until confirmed", async () => {
      await hers.getByRole("switch", { name: "Enabled" }).press("Space");
      await graceSaves("Name", "Chat");
      await button(hers, "Disable webhook").click();
      await notice().waitFor();
      await hers.getByText("Now Name: Chat").waitFor();
      expect((await ask(webhookUrl)).enabled).toBe(true);
      await button(hers, "Disable webhook").click();
      await hers.getByText("This webhook is disabled").waitFor();
    });

    it("does not enable it from a page that shows an older version", async () => {
      // Without the stream of changes, the page does not learn of the edit.
      await hers.route("**/changes/stream", (route) => route.abort());
      await hers.reload();
      await hers.getByText("This webhook is disabled").waitFor();
      await graceSaves("URL", "http://127.0.0.1:9009/moved");
      await hers.getByRole("switch", { name: "Enabled" }).press("Space");
      await hers.getByText("Chat was not enabled: someone changed it first.").waitFor();
      await hers.getByText("http://127.0.0.1:9009/moved").waitFor();
      expect((await ask(webhookUrl)).enabled).toBe(false);
      await hers.unroute("**/changes/stream");
    });

    it("does not delete it upon another version, until asked again", async () => {
      await button(hers, "Delete").click();
      await hers.getByLabel("Type the name of the webhook").fill("Chat");
      await graceSaves("URL", "http://127.0.0.1:9009/still-needed");
      await button(hers, "Delete webhook").click();
      await hers.getByText("Now URL: http://127.0.0.1:9009/still-needed").waitFor();
      expect((await ask(webhookUrl)).url).toBe("http://127.0.0.1:9009/still-needed");
      await button(hers, "Delete webhook").click();
      await hers.getByText("Web has no webhooks yet").waitFor();
    });
  });

  describe("of a schedule", () => {
    const enter = async (page: Page, digits: string) => {
      await page.getByRole("spinbutton", { name: "month, Turn on at" }).focus();
      await page.keyboard.type(digits);
    };

    beforeAll(async () => {
      // Without the stream of changes, each page shows what was there when it was opened.
      for (const page of [hers, graces]) {
        await page.route("**/changes/stream", (route) => route.abort());
        await page.goto(`${given().gateway.url}/flags/checkout/schedule`);
      }
    });

    it("keeps the one of the first, and what the second entered", async () => {
      await enter(hers, "010120990900A");
      await enter(graces, "020220980900A");
      await button(graces, "Schedule").click();
      await graces.getByRole("heading", { name: "Scheduled in production" }).waitFor();
      const theirs = await ask(scheduleUrl);
      await button(hers, "Schedule").click();
      await hers.getByText("Someone else changed this schedule first.").waitFor();
      await hers.getByText("Set by grace@example.com").waitFor();
      await hers.getByText("On from Thu, Jan 1, 2099, 9:00 AM").waitFor();
      await expectNoSeriousViolations(hers);
      expect((await ask(scheduleUrl)).id).toBe(theirs.id);
      await button(hers, "Replace schedule").click();
      await hers.getByText("Set by you").first().waitFor();
      expect((await ask(scheduleUrl)).id).not.toBe(theirs.id);
    });

    it("does not clear another one than was shown, until asked again", async () => {
      const hersId = (await ask(scheduleUrl)).id;
      await button(hers, "Clear").click();
      await graces.reload();
      await button(graces, "Replace").click();
      await enter(graces, "030320970900A");
      await button(graces, "Replace schedule").click();
      await eventually(async () => (await ask(scheduleUrl)).id !== hersId);
      await button(hers, "Clear schedule").click();
      const dialog = hers.getByRole("dialog");
      await dialog.getByText("The current one was set by grace@example.com").waitFor();
      await dialog.getByText("On from Sun, Mar 3, 2097").waitFor();
      await expectNoSeriousViolations(hers);
      expect((await ask(scheduleUrl)).status).toBe("pending");
      await button(hers, "Clear schedule").click();
      await hers.getByText("The schedule of checkout in production is cleared.").waitFor();
      expect((await ask(scheduleUrl)).status).toBe("cancelled");
    });

    it("says that the schedule to clear has ended", async () => {
      await ask(scheduleUrl, "POST", { enable_at: "2099-01-01T00:00:00Z" });
      await hers.reload();
      await button(hers, "Clear").click();
      await ask(scheduleUrl, "DELETE");
      await button(hers, "Clear schedule").click();
      await hers.getByText("is no longer pending").waitFor();
      await hers.getByRole("dialog").waitFor({ state: "detached" });
    });
  });
}
