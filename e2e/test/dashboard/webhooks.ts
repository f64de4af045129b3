import { eventually, type Receiver, startReceiver } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { Webhook as StandardWebhook } from "standardwebhooks";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, type Tenant } from "../../src/system/tenancy.ts";

/** A webhook from its creation to its deletion, with a receiver that works and fails. */
export function describeWebhooks(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let receiver: Receiver;
  let flagUrl: string;
  let secret: string;
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const ask = (url: string, method = "GET", body?: object) =>
    must(url, { method, key: tenant.serverKey, ...(body && { body }) });
  const webhookUrl = () =>
    `${given().gateway.url}/api/v1/projects/${tenant.projectId}${new URL(page.url()).pathname}`;
  const deliveries = async (status = "delivered"): Promise<{ id: string }[]> =>
    (await ask(`${webhookUrl()}/deliveries?status=${status}`)).deliveries;
  const rows = (status: string) =>
    page.getByRole("list", { name: "Deliveries" }).getByRole("button", { name: status });
  const confirmCopied = async () => {
    await page.getByRole("checkbox", { name: "I have copied the secret" }).press("Space");
    await page.getByRole("dialog").getByText("Close", { exact: true }).click();
  };
  const standardAccepts = (withSecret: string): boolean => {
    const request = receiver.requests.at(-1);
    if (request === undefined) throw new Error("nothing was received");
    try {
      new StandardWebhook(withSecret).verify(request.raw, request.headers as never);
      return true;
    } catch {
      return false;
    }
  };

  beforeAll(async () => {
    receiver = await startReceiver();
    given().system.endsWithSystem(receiver.close);
    tenant = await createTenant(given().gateway.url, { name: "Webhooks" });
    const flagsUrl = `${given().gateway.url}/api/v1/flags`;
    const { id } = await ask(flagsUrl, "POST", { key: "checkout", name: "Checkout" });
    flagUrl = `${flagsUrl}/${id}`;
    page = await openDashboard(given, tenant, "/webhooks");
  });
  afterAll(() => page?.close());

  it("explains a URL that is not allowed beside the field", async () => {
    await button("Create the first webhook").click();
    await page.getByRole("textbox", { name: "Name" }).fill("Release notes");
    await page.getByRole("textbox", { name: "URL" }).fill("https://ada:pw@example.com");
    await page.keyboard.press("Enter");
    await page.getByText("The URL must not contain a user name or password.").waitFor();
    await expectNoSeriousViolations(page);
  });

  it("creates a webhook with the keyboard, and shows its secret once", async () => {
    await page.getByRole("textbox", { name: "URL" }).fill(`${receiver.url}/hooks`);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Copy the secret" }).waitFor();
    secret = await page.getByText(/^whsec_/).innerText();
    await page.keyboard.press("Escape");
    await confirmCopied();
    await page.getByRole("heading", { name: "Release notes" }).waitFor();
    const kept = await page.evaluate(() =>
      JSON.stringify([{ ...sessionStorage }, { ...localStorage }, location.href]),
    );
    expect(kept).not.toContain(secret);
    expect(await page.content()).not.toContain(secret);
  });

  it("shows the delivery of a change, signed with the secret, without a reload", async () => {
    await page.getByText("No deliveries yet").waitFor();
    await ask(flagUrl, "PATCH", { enabled: true });
    const row = await rows("Delivered").innerText();
    expect(row.replaceAll(/\s+/g, " ")).toBe(
      "Delivered flag.toggled checkout in production HTTP 200, 1 attempt",
    );
    expect(await button("Redeliver all failed").count()).toBe(0);
    await rows("Delivered").click();
    await page.getByText("checkout in production, changed by ada@example.com").waitFor();
    await page.getByText("Status 200").waitFor();
    await page.getByText('"event": "flag.toggled"').waitFor();
    expect(standardAccepts(secret)).toBe(true);
    await expectNoSeriousViolations(page);
  });

  it("says why a test failed", async () => {
    receiver.answer({ kind: "answer", status: 401, body: "No signature for this secret" });
    await button("Send a test").click();
    await page.getByText("The test failed: status 401").waitFor();
    await page.getByText("Check that it uses the secret of this webhook.").waitFor();
    await page.getByText("No signature for this secret").waitFor();
    receiver.answer({ kind: "close", when: "at once" });
    await button("Send a test").click();
    await page.getByText("The test failed: connection closed early").waitFor();
    await page.getByText("Check that the address is correct and public").waitFor();
    await expectNoSeriousViolations(page);
    receiver.reset();
    await button("Send a test").click();
    await page.getByText("The test succeeded: status 200").waitFor();
  });

  it("retries a delivery now, instead of at its next attempt", async () => {
    receiver.answer({ kind: "answer", status: 503, body: "the queue is full" });
    await ask(flagUrl, "PATCH", { enabled: false });
    await rows("Retrying").click();
    await page.getByText("Next attempt:").waitFor();
    await page.getByText("the queue is full").waitFor();
    receiver.reset();
    await button("Retry now").click();
    await eventually(async () => (await rows("Delivered").count()) === 2);
  });

  it("redelivers all failed deliveries after the receiver is repaired", async () => {
    receiver.answer({ kind: "answer", status: 500 });
    for (const { id } of await deliveries())
      await ask(`${webhookUrl()}/deliveries/${id}/redeliver`, "POST");
    await eventually(async () => (await deliveries("failed")).length === 2);
    await page.goto(`${page.url()}?status=failed`);
    await rows("Failed").first().waitFor();
    expect(await rows("Failed").count()).toBe(2);
    receiver.reset();
    await button("Redeliver all failed").click();
    await button("Redeliver").click();
    await page.getByText("2 deliveries are sent again.").waitFor();
    await button("Close").last().click();
    await page.getByText("No failed deliveries").waitFor();
    await button("Redeliver all failed").waitFor({ state: "detached" });
    await eventually(async () => (await deliveries()).length === 2);
  });

  it("rotates the secret, and both are valid during the overlap", async () => {
    await button("Rotate the secret").click();
    const next = await page.getByText(/^whsec_/).innerText();
    await button("Rotate the secret").last().click();
    await page.getByRole("heading", { name: "The new secret of Release notes" }).waitFor();
    await confirmCopied();
    await page.getByText("Deliveries of Release notes are signed with the new secret.").waitFor();
    await button("Send a test").click();
    await page.getByText("The test succeeded").waitFor();
    expect([standardAccepts(secret), standardAccepts(next)]).toEqual([true, true]);
  });

  it("lets a webhook continue traces", async () => {
    expect((await ask(webhookUrl())).trace_context).toBe(false);
    await button("Edit").click();
    await page.getByText("Continue traces").click();
    await button("Save").click();
    await page.getByText("Release notes is saved.").waitFor();
    expect((await ask(webhookUrl())).trace_context).toBe(true);
  });

  it("does not replace the edit of another person without asking", async () => {
    await button("Edit").click();
    await page.getByRole("textbox", { name: "URL" }).fill(`${receiver.url}/mine`);
    await ask(webhookUrl(), "PATCH", { url: `${receiver.url}/theirs`, name: "Release log" });
    await button("Save").click();
    await page.getByText(`URL: ${receiver.url}/theirs`).waitFor();
    await button("Save anyway").click();
    await page.getByText("Release log is saved.").waitFor();
    expect(await ask(webhookUrl())).toMatchObject({
      url: `${receiver.url}/mine`,
      name: "Release log",
    });
  });

  it("asks before it disables a webhook", async () => {
    await page.getByRole("switch", { name: "Enabled" }).press("Space");
    await button("Disable webhook").click();
    await page.getByText("This webhook is disabled").waitFor();
    expect((await ask(webhookUrl())).enabled).toBe(false);
  });

  it("deletes a webhook after its name is typed", async () => {
    await page.getByRole("link", { name: "Webhooks" }).first().click();
    await page.getByText("Disabled", { exact: true }).waitFor();
    await expectNoSeriousViolations(page);
    await page.getByRole("link", { name: "Release log" }).click();
    await button("Delete").click();
    const confirm = button("Delete webhook");
    expect(await confirm.isDisabled()).toBe(true);
    await page.getByLabel("Type the name of the webhook").fill("Release log");
    await confirm.click();
    await page.getByText("Web has no webhooks yet").waitFor();
  });
}
