import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { ensureDashboard } from "../../deploy/local/src/dashboard-build.ts";
import { expectNoSeriousViolations } from "../src/dashboard/accessibility.ts";
import { type PeopleTenant, startPeopleTenant } from "../src/dashboard/people-tenant.ts";

describeInChromium("given people who sign in to the dashboard", () => {
  let system: PeopleTenant;
  let browser: Browser;

  beforeAll(async () => {
    [system, browser] = await Promise.all([
      startPeopleTenant("People", await ensureDashboard()),
      startChromium(),
    ]);
  }, 120_000);
  afterAll(async () => {
    await browser?.close();
    await system?.close();
  });

  /** Creates a user with a role, and opens the operator's link. */
  async function signIn(email: string, grant: object): Promise<Page> {
    const page = await system.openLink(browser, await system.addUser(email, grant));
    await page.getByText("New checkout").waitFor();
    return page;
  }

  it("opens the project of an owner by the operator's link, and keeps no key in the browser", async () => {
    const page = await signIn("owner@example.com", {
      role: "owner",
      scope: { organization: system.tenant.organizationId },
    });
    expect(new URL(page.url()).origin).toBe(system.publicUrl);
    const stored = await page.evaluate(() =>
      JSON.stringify({ ...sessionStorage, ...localStorage, cookie: document.cookie }),
    );
    // A key, or the secret of a session.
    expect(stored).not.toMatch(/hs_|\.[A-Za-z0-9_-]{43}/);
    await expectNoSeriousViolations(page);
    await page.getByRole("link", { name: "API keys" }).click();
    await page.getByRole("heading", { name: "API keys" }).waitFor();
    await page.getByRole("link", { name: "Schedules" }).click();
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
    await page.reload();
    await page.getByRole("heading", { name: "Schedules" }).waitFor();
    await page.close();
  });

  it("opens a link once, and says what to do the second time", async () => {
    const id = await system.addUser("once@example.com");
    const { url } = await system.operate("sign-in-links", { user_id: id });
    await browser.context.clearCookies();
    const page = await browser.context.newPage();
    await page.goto(url);
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const second = await browser.context.newPage();
    await second.goto(url);
    await second.getByText("The sign-in link was used already").waitFor();
    expect(second.url()).toBe(`${system.publicUrl}/sign-in`);
    await expectNoSeriousViolations(second);
    await Promise.all([page.close(), second.close()]);
  });

  it("has no form for keys where keys do not sign in", async () => {
    await browser.context.clearCookies();
    const page = await browser.context.newPage();
    await page.route("**/auth/methods", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: { ...(await response.json()), key: false } });
    });
    await page.goto(`${system.publicUrl}/sign-in`);
    await page.getByRole("button", { name: "Sign in with a passkey" }).waitFor();
    expect(await page.getByLabel("Server key").count()).toBe(0);
    await page.close();
  });

  it("ends with the session, also for a page that is open", async () => {
    const page = await signIn("editor@example.com", {
      role: "editor",
      scope: { project: system.tenant.projectId },
    });
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    const { status } = await page.evaluate(async () => {
      const response = await fetch("/api/v1/session");
      return { status: response.status };
    });
    expect(status).toBe(401);
    await page.close();
  });
});
