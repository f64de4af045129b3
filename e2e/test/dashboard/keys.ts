import { call, eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
  openDashboard,
} from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

const idOf = (key: string): string => key.split("_")[1] ?? "";

/** Issuing, rotating and revoking keys. */
export function describeKeys(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let errors: string[];
  const flagsUrl = () => `${given().gateway.url}/api/v1/flags`;
  const statusWith = async (key: string) => (await call(flagsUrl(), { key })).status;
  const keysUrl = () =>
    `${given().gateway.url}/api/v1/projects/${tenant.projectId}/environments/${tenant.environmentId}/keys`;

  const row = (name: string) => page.getByRole("row", { name: new RegExp(`^${name} `) });
  const rowInUse = () => page.getByRole("row").filter({ hasText: "In use here" });
  const choose = async (name: string, action: string) => {
    await page.getByRole("button", { name: `Actions for ${name}` }).click();
    await page.getByRole("menuitem", { name: action }).click();
  };
  const shownKey = () => page.getByRole("dialog").locator("pre").innerText();
  const issue = async (name: string) => {
    await page.getByRole("button", { name: "Issue key" }).click();
    await page.getByRole("textbox", { name: "Name" }).fill(name);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: `The new key ${name}` }).waitFor();
    return shownKey();
  };
  const confirmCopied = async () => {
    await page.getByRole("checkbox", { name: "I have copied the key" }).press("Space");
    await page.getByRole("dialog").getByText("Close", { exact: true }).click();
    await page.getByRole("dialog").waitFor({ state: "detached" });
  };

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Keys" });
    page = await openDashboard(given, tenant, "/keys");
    errors = collectConsoleErrors(page);
  });
  afterAll(() => page?.close());

  it("issues a key that works, and shows it once", async () => {
    const key = await issue("Ada's laptop");
    await page.keyboard.press("Escape");
    await page.getByText("Confirm that you have copied the key").waitFor();
    await expectNoSeriousViolations(page);
    await confirmCopied();
    await row("Ada's laptop").getByText("with the key server").waitFor();
    await eventually(async () => (await statusWith(key)) === 200);
    const kept = await page.evaluate(() =>
      JSON.stringify([
        { ...sessionStorage, ...localStorage },
        location.href,
        document.body.innerHTML,
      ]),
    );
    expect(kept).not.toContain(key);
  });

  it("has no serious finding of axe", async () => {
    await expectNoSeriousViolations(page);
  });

  it("revokes a key with the keys that it issued, after its name was typed", async () => {
    const key = await issue("Leaked");
    await confirmCopied();
    await eventually(async () => (await statusWith(key)) === 200);
    const child = await must(keysUrl(), {
      method: "POST",
      key,
      body: { kind: "server", name: "Child", user_id: tenant.userId },
    });
    await choose("Leaked", "Revoke…");
    const revoke = page.getByRole("dialog").getByRole("button", { name: "Revoke key" });
    expect(await revoke.isDisabled()).toBe(true);
    await page.getByLabel("Type the name of the key").fill("Leaked");
    await page.getByRole("checkbox", { name: "Also revoke every key issued by it" }).press("Space");
    await revoke.click();
    await row("Leaked").waitFor({ state: "detached" });
    await eventually(async () => (await statusWith(key)) === 401);
    await eventually(async () => (await statusWith(child.key)) === 401);
    await page.getByText("Show revoked and expired keys (2)").click();
    await row("Leaked").getByText("revoked").waitFor();
  });

  it("explains beside the field that a key cannot outlive the key that issues it", async () => {
    const parent = await must(keysUrl(), {
      method: "POST",
      key: operatorToken,
      body: {
        kind: "server",
        name: "Short-lived",
        user_id: tenant.userId,
        expires_at: new Date(Date.now() + 86_400_000).toISOString(),
      },
    });
    const other = await openDashboard(given, { serverKey: parent.key }, "/keys");
    await other.getByRole("button", { name: "Issue key" }).click();
    await other.getByRole("textbox", { name: "Name" }).fill("Too long");
    await other.getByRole("button", { name: "Expires" }).click();
    await other.getByRole("option", { name: "At a time that you choose" }).click();
    const field = other.getByLabel("Expires at (your local time)");
    await field.fill("2099-01-31T09:00");
    await other.getByText("Your key expires before this time.").waitFor();
    const submit = other.getByRole("dialog").getByRole("button", { name: "Issue key" });
    expect(await submit.isDisabled()).toBe(true);
    expect(await field.getAttribute("aria-invalid")).toBe("true");
    expect(await other.getByRole("textbox", { name: "Name" }).inputValue()).toBe("Too long");
    await other.close();
  });

  it("rotates the key in use, and the session continues with the new one", async () => {
    await rowInUse().getByRole("button").last().click();
    await page.getByRole("menuitem", { name: "Rotate…" }).click();
    await page.getByRole("button", { name: "Rotate key" }).click();
    await page.getByRole("heading", { name: "The new key server" }).waitFor();
    const key = await shownKey();
    await page.getByRole("checkbox", { name: "I have copied the key" }).press("Space");
    await page.getByRole("button", { name: "Continue with the new key" }).click();
    await page.getByText("You are signed in with the new key server.").waitFor();
    await rowInUse().getByText(idOf(key)).waitFor();
    expect(errors).toEqual([]);
    await must(`${keysUrl()}/${idOf(tenant.serverKey)}`, {
      method: "DELETE",
      key: operatorToken,
    });
    await eventually(async () => (await statusWith(tenant.serverKey)) === 401);
    await page.reload();
    await rowInUse().getByText(idOf(key)).waitFor();
  });

  it("signs out when the key in use is revoked", async () => {
    await rowInUse().getByRole("button").last().click();
    await page.getByRole("menuitem", { name: "Revoke…" }).click();
    await page.getByText("Revoking it signs you out.").waitFor();
    await page.getByLabel("Type the name of the key").fill("server");
    await page.getByRole("button", { name: "Revoke key and sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });
}
