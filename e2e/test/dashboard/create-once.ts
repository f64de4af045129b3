import { eventually } from "@halyard/testing";
import { afterEach, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

/** Creates whose responses are lost or slow, and what is shown only once. */
export function describeCreates(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  const api = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const read = (path: string, key = tenant.serverKey) => must(api(path), { key });
  const button = (name: string) => page.getByRole("button", { name, exact: true });
  const dialog = () => page.getByRole("dialog");
  const field = (name: string) => dialog().getByRole("textbox", { name });
  const close = async (kind: "key" | "secret") => {
    await page.getByRole("checkbox", { name: `I have copied the ${kind}` }).press("Space");
    await dialog().getByText("Close", { exact: true }).click();
    await dialog().waitFor({ state: "detached" });
  };
  /** Sends the form of the open dialog twice, because the first response is lost. */
  const sendTwice = async () => {
    // The plans of a new organization may still be loading.
    await dialog().locator("button[type=submit]:enabled").waitFor();
    await page.keyboard.press("Enter");
    await page.getByText("Halyard cannot be reached.").waitFor();
    await field("Name").or(field("E-mail")).first().press("Enter");
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Once" });
  });
  afterEach(() => page?.close());

  it("creates one flag if the first response is lost", async () => {
    page = await openDashboard(given, tenant);
    await loseFirstResponse(page);
    await button("Create the first flag").click();
    await field("Name").fill("Checkout");
    await sendTwice();
    await page.getByRole("switch", { name: "Flag in production" }).waitFor();
    expect((await read("flags")).flags).toHaveLength(1);
  });

  it("sets one schedule if the first response is lost, and another one with the same times later", async () => {
    const { flags } = await read("flags");
    const schedules = async () => (await read(`schedules?flag_id=${flags[0].id}`)).schedules;
    page = await openDashboard(given, tenant, "/flags/checkout/schedule");
    await loseFirstResponse(page);
    const enter = async () => {
      await page.getByRole("spinbutton", { name: "month, Turn on at" }).focus();
      await page.keyboard.type("010120990900A");
      await button("Schedule").click();
    };
    await enter();
    await page.getByText("Halyard cannot be reached.").waitFor();
    await button("Replace schedule").click();
    await page.getByText("checkout is scheduled in production.").waitFor();
    expect(await schedules()).toHaveLength(1);

    await button("Clear").click();
    await dialog().getByRole("button", { name: "Clear" }).click();
    await button("Schedule").waitFor();
    await enter();
    await page.getByRole("heading", { name: "Scheduled in production" }).waitFor();
    expect(await schedules()).toHaveLength(2);
  });

  it("creates one webhook if the first response is lost, and keeps its secret until it is copied", async () => {
    page = await openDashboard(given, tenant);
    await loseFirstResponse(page);
    await page.getByRole("link", { name: "Webhooks" }).click();
    await button("Create the first webhook").click();
    await field("Name").fill("Releases");
    await field("URL").fill("https://example.com/hooks");
    await sendTwice();
    await page.getByRole("heading", { name: "Copy the secret" }).waitFor();
    const secret = page.getByText(/^whsec_/);
    await page.keyboard.press("Escape");
    await page.getByText("Confirm that you have copied the secret").waitFor();
    await page.mouse.click(2, 2);
    await page.goBack();
    await page.getByRole("heading", { name: "Leave without the key or secret?" }).waitFor();
    await expectNoSeriousViolations(page);
    await button("Stay here").click();
    await secret.waitFor();
    await close("secret");
    await page.getByRole("heading", { name: "Releases" }).waitFor();
    expect((await read(`projects/${tenant.projectId}/webhooks`)).webhooks).toHaveLength(1);
  });

  it("rotates a secret once if the first response is lost, and asks before the dialog closes", async () => {
    const { webhooks } = await read(`projects/${tenant.projectId}/webhooks`);
    const { id, version } = webhooks[0];
    page = await openDashboard(given, tenant, `/webhooks/${id}`);
    await loseFirstResponse(page, "PATCH");
    await button("Rotate the secret").click();
    const secret = await dialog()
      .getByText(/^whsec_/)
      .innerText();
    await dialog().getByRole("button", { name: "Rotate the secret" }).click();
    await page.getByText("Halyard cannot be reached.").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("heading", { name: "Leave without the key or secret?" }).waitFor();
    await button("Stay here").click();
    await dialog().getByRole("button", { name: "Rotate the secret" }).click();
    await page.getByRole("heading", { name: "The new secret of Releases" }).waitFor();
    expect(await page.getByText(/^whsec_/).innerText()).toBe(secret);
    await close("secret");
    expect((await read(`projects/${tenant.projectId}/webhooks/${id}`)).version).toBe(version + 1);
  });

  it("asks before it closes the dialog of a key whose response is lost", async () => {
    page = await openDashboard(given, tenant, "/keys");
    await loseFirstResponse(page);
    await button("Issue key").click();
    await field("Name").fill("Lost");
    await page.keyboard.press("Enter");
    await page.getByText("Halyard cannot be reached.").waitFor();
    await button("Cancel").click();
    await button("Stay here").click();
    await field("Name").press("Enter");
    await page.getByRole("heading", { name: "The new key Lost" }).waitFor();
    await close("key");
  });

  it("keeps the dialogs of secrets open while a response is slow", async () => {
    page = await openDashboard(given, tenant, "/webhooks");
    await page.getByRole("link", { name: "Releases" }).click();
    const slowly = async (send: () => Promise<void>) => {
      const release = await holdWrites(page);
      await send();
      await button("Cancel").and(page.locator(":disabled")).waitFor();
      await page.keyboard.press("Escape");
      await page.mouse.click(2, 2);
      expect(await dialog().getByRole("button", { name: "Close" }).isDisabled()).toBe(true);
      await release();
    };
    await button("Rotate the secret").click();
    await slowly(() => dialog().getByRole("button", { name: "Rotate the secret" }).click());
    await page.getByRole("heading", { name: "The new secret of Releases" }).waitFor();
    await page.getByText(/^whsec_/).waitFor();
    await close("secret");

    await page.getByRole("link", { name: "API keys" }).click();
    await button("Issue key").click();
    await field("Name").fill("Slow");
    await slowly(() => page.keyboard.press("Enter"));
    await page.getByRole("heading", { name: "The new key Slow" }).waitFor();
    await close("key");
    await button("Actions for Slow").click();
    await page.getByRole("menuitem", { name: "Rotate…" }).click();
    await slowly(() => button("Rotate key").click());
    await page.getByRole("heading", { name: "The new key Slow" }).waitFor();
    await close("key");
  });

  it("shows a new key although the key in use is revoked, then signs out", async () => {
    const { projectId, environmentId, userId } = tenant;
    const keys = `projects/${projectId}/environments/${environmentId}/keys`;
    const body = { kind: "server", name: "Short", user_id: userId };
    const { id, key } = await must(api(keys), { method: "POST", key: operatorToken, body });
    page = await openDashboard(given, { serverKey: key }, "/keys");
    await button("Issue key").click();
    await field("Name").fill("Successor");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "The new key Successor" }).waitFor();
    await must(api(`${keys}/${id}`), { method: "DELETE", key: operatorToken });
    await page.getByText("Your key is no longer valid").waitFor({ state: "attached" });
    await dialog().getByText(/^hs_/).waitFor();
    await page.getByRole("checkbox", { name: "I have copied the key" }).press("Space");
    await page.getByText("A key is no longer valid").waitFor();
  });

  it("creates one organization, user, project and environment if the first responses are lost", async () => {
    page = await given().browser.context.newPage();
    await page.goto(given().gateway.url);
    await page.getByLabel("Server key").fill(operatorToken);
    await page.keyboard.press("Enter");
    const create = async (what: string, label: string, name: string) => {
      await button(`Create ${what}`).click();
      await field(label).fill(name);
      await loseFirstResponse(page);
      await sendTwice();
      await dialog().waitFor({ state: "detached" });
    };
    await create("organization", "Name", "Created once");
    await page.getByRole("heading", { name: "Created once" }).waitFor();
    const path = new URL(page.url()).pathname.slice(1);
    await create("user", "E-mail", "grace@example.com");
    await create("project", "Name", "Shop");
    await page.getByRole("heading", { name: "Shop" }).waitFor();
    await create("environment", "Name", "testing");

    const operated = (route: string) => read(route, operatorToken);
    const { organizations } = await operated("organizations");
    const { users } = await operated(`${path}/users`);
    const { projects } = await operated(`${path}/projects`);
    expect(
      organizations.filter(({ name }: { name: string }) => name === "Created once"),
    ).toHaveLength(1);
    expect([users.length, projects.length]).toEqual([1, 1]);
    expect(projects[0].environments).toHaveLength(4);
  });
}

/** Loses the response to the next request that creates or changes something. */
async function loseFirstResponse(page: Page, method: "POST" | "PATCH" = "POST"): Promise<void> {
  let isLost = false;
  await page.route(/\/api\/v1\//, async (route) => {
    if (route.request().method() !== method || isLost) return route.fallback();
    isLost = true;
    const response = await route.fetch();
    expect(response.ok()).toBe(true);
    await route.abort();
  });
}

/** Holds the next write, until the returned function is called. */
async function holdWrites(page: Page): Promise<() => Promise<void>> {
  const { promise: released, resolve } = Promise.withResolvers<void>();
  let isHeld = false;
  await page.route(/\/api\/v1\//, async (route) => {
    if (isHeld || !["POST", "PATCH"].includes(route.request().method())) return route.fallback();
    isHeld = true;
    await released;
    await route.continue();
  });
  return async () => {
    await eventually(() => isHeld);
    resolve();
  };
}
