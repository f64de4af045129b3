import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { client, startIdentityProvider } from "@halyard/testing/identity-provider";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { ensureDashboard } from "../../deploy/local/src/dashboard-build.ts";
import { expectNoSeriousViolations } from "../src/dashboard/accessibility.ts";
import { draftPercentage, endSoon, percentageIn } from "../src/dashboard/ending-session.ts";
import { issueKey, rejectFirst } from "../src/dashboard/old-sign-in.ts";
import { type PeopleSystem, startPeopleSystem } from "../src/dashboard/people-system.ts";
import { createTenant, must, type Tenant } from "../src/system/tenancy.ts";

describeInChromium("given an identity provider, and SIGN_IN_BY_KEY=off", () => {
  let provider: Awaited<ReturnType<typeof startIdentityProvider>>;
  let system: PeopleSystem;
  let browser: Browser;
  let tenant: Tenant;

  beforeAll(async () => {
    const { folder } = await ensureDashboard();
    const settingsOf = async (publicUrl: string) => {
      provider = await startIdentityProvider({
        callback: `${publicUrl}/auth/oidc/callback`,
        signOut: `${publicUrl}/sign-in`,
        logout: `${publicUrl}/auth/oidc/backchannel-logout`,
      });
      return {
        ...{ OIDC_ISSUER: provider.url, OIDC_CLIENT_ID: client.id },
        ...{ OIDC_CLIENT_SECRET: client.secret, SIGN_IN_BY_KEY: "off" },
      };
    };
    system = await startPeopleSystem({ dashboard: folder, settingsOf });
    browser = await startChromium();
    tenant = await createTenant(system.gateway.url, { name: "People" });
    await must(`${system.gateway.url}/api/v1/flags`, {
      method: "POST",
      key: tenant.serverKey,
      body: { key: "new-checkout", name: "New checkout" },
    });
    await system.operate(tenant, "grants", {
      ...{ subject: { user_id: tenant.userId }, role: "admin" },
      scope: { organization: tenant.organizationId },
    });
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await system?.close();
    await provider?.close();
  });

  /** The next login at the provider is of this account. */
  function signInAtProvider(name: string): void {
    const claims = { email: `${name}@example.com`, email_verified: true, name };
    provider.state.account = { accountId: name, claims };
  }

  /** Opens a page without a session here or at the provider. The provider will sign in this account. */
  async function newPage(name: string): Promise<Page> {
    signInAtProvider(name);
    await browser.context.clearCookies();
    return browser.context.newPage();
  }

  it("has no form for keys, which the API still accepts", async () => {
    const page = await newPage("ada");
    await page.goto(`${system.publicUrl}/sign-in`);
    await page.getByRole("button", { name: "Sign in with your organization" }).waitFor();
    expect(await page.getByLabel("Server key").count()).toBe(0);
    await must(`${system.gateway.url}/api/v1/flags`, { key: tenant.serverKey });
    await page.close();
  });

  it("signs in, and returns to the page that was opened", async () => {
    const page = await newPage("ada");
    await page.goto(`${system.publicUrl}/flags/new-checkout/settings`);
    await page.getByRole("button", { name: "Sign in with your organization" }).click();
    await page.getByRole("button", { name: "Delete flag" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/flags/new-checkout/settings");
    await page.close();
  });

  it("signs in again in another tab before the session ends, and keeps a draft", async () => {
    const page = await newPage("ada");
    await page.goto(system.publicUrl);
    await page.getByRole("button", { name: "Sign in with your organization" }).click();
    await page.getByText("New checkout").waitFor();
    await endSoon(page);
    await page.goto(`${system.publicUrl}/flags/new-checkout`);
    await draftPercentage(page, "40");
    const warning = page.getByText("Your sign-in ends at");
    await warning.waitFor();
    const [opened] = await Promise.all([
      browser.context.waitForEvent("page"),
      page.getByRole("button", { name: "Sign in again" }).press("Enter"),
    ]);
    await opened.getByRole("heading", { name: "You", exact: true }).waitFor();
    await opened.close();
    await page.evaluate(() => window.dispatchEvent(new Event("focus")));
    await warning.waitFor({ state: "detached" });
    expect(await percentageIn(page).inputValue()).toBe("40");
    await page.close();
  });

  it("confirms an old sign-in, and returns to the page", async () => {
    const page = await newPage("ada");
    await page.goto(system.publicUrl);
    await page.getByRole("button", { name: "Sign in with your organization" }).click();
    await page.getByText("New checkout").waitFor();
    await rejectFirst(page, /\/keys$/);
    await issueKey(page, "Laptop");
    const question = page.getByRole("dialog", { name: "Confirm that it is you" });
    await question.waitFor();
    await expectNoSeriousViolations(page);
    const confirmedAt = () =>
      page.evaluate(async () => {
        const response = await fetch("/api/v1/session");
        return ((await response.json()) as { confirmed_at: string }).confirmed_at;
      });
    const before = await confirmedAt();
    // The browser asks about the form, because leaving the page loses it.
    page.once("dialog", (dialog) => void dialog.accept());
    await Promise.all([
      page.waitForResponse(/\/auth\/oidc\/callback/),
      question.getByRole("button", { name: "Confirm with your organization" }).click(),
    ]);
    await question.waitFor({ state: "detached" });
    await page.getByRole("button", { name: "Issue key" }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/keys");
    expect(new Date(await confirmedAt()).getTime()).toBeGreaterThan(new Date(before).getTime());
    await page.close();
  });

  it("offers another account after one without a user, and returns to the page", async () => {
    const page = await newPage("eve");
    await page.goto(`${system.publicUrl}/flags/new-checkout/settings`);
    await page.getByRole("button", { name: "Sign in with your organization" }).click();
    await page.getByText("There is no user with your address. Use another account").waitFor();
    await expectNoSeriousViolations(page);
    // The provider would sign in the same account again.
    signInAtProvider("ada");
    await page.getByRole("button", { name: "Use another account" }).press("Enter");
    await page.getByRole("button", { name: "Delete flag" }).waitFor();
    await page.close();
  });

  it("accepts an invitation, whose code is stored only during the sign-in", async () => {
    const invited = { email: "grace@example.com", role: "viewer" };
    const { url } = await system.operate(tenant, "invitations", invited);
    const page = await newPage("grace");
    await page.goto(url);
    await page.getByRole("button", { name: "Sign in with your organization" }).waitFor();
    const stored = () => page.evaluate(() => sessionStorage.getItem("halyard.invitation"));
    expect(await stored()).toBeNull();
    await page.getByRole("button", { name: "Sign in with your organization" }).click();
    await page.getByText("New checkout").waitFor();
    expect(await stored()).toBeNull();
    await page.close();
  });

  it("keeps the invitation of a person whose sign-in the provider rejected", async () => {
    const invited = { email: "joan@example.com", role: "viewer" };
    const { url } = await system.operate(tenant, "invitations", invited);
    const page = await newPage("another");
    await page.goto(url);
    await page.getByRole("button", { name: "Sign in with your organization" }).click();
    await page.getByText("There is no user with your address.").waitFor();
    await page.getByRole("heading", { name: "Join People" }).waitFor();
    await expectNoSeriousViolations(page);
    signInAtProvider("joan");
    await page.getByRole("button", { name: "Use another account" }).press("Enter");
    await page.getByText("New checkout").waitFor();
    await page.close();
  });
});
