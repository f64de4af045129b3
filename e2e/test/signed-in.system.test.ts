import { randomUUID } from "node:crypto";
import type { CallOptions } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { ensureDashboard } from "../../deploy/local/src/dashboard-build.ts";
import { expectNoSeriousViolations } from "../src/dashboard/accessibility.ts";
import { type PeopleTenant, startPeopleTenant } from "../src/dashboard/people-tenant.ts";
import { signInByLink } from "../src/system/sign-in.ts";
import { must, operatorToken } from "../src/system/tenancy.ts";

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
  async function signIn(email: string, grant: object): Promise<{ page: Page; userId: string }> {
    const userId = await system.addUser(email, grant);
    const page = await system.openLink(browser, userId);
    await page.getByText("New checkout").waitFor();
    return { page, userId };
  }

  it("opens the project of an owner by the operator's link, and keeps no key in the browser", async () => {
    const { page } = await signIn("owner@example.com", {
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

  /** Signs in the user elsewhere. Returns a function that sends requests by this session. */
  async function signInElsewhere(userId: string) {
    const { organizationId } = system.tenant;
    const browser = { organizationId, userId, origin: system.publicUrl };
    const headers = await signInByLink(system.gateway.url, browser);
    return (path: string, options: CallOptions = {}) =>
      must(system.gateway.url + path, { ...options, headers });
  }

  /** Returns the status of the session's route, from the page. */
  const sessionStatus = (page: Page) =>
    page.evaluate(async () => (await fetch("/api/v1/session")).status);

  it("signs out by the button, in the browser and in management", async () => {
    const { page } = await signIn("leaving@example.com", {
      role: "editor",
      scope: { project: system.tenant.projectId },
    });
    const { cookies } = await browser.context.storageState();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await sessionStatus(page)).toBe(401);
    await browser.context.addCookies(cookies);
    expect(await sessionStatus(page)).toBe(401);
    await page.close();
  });

  it("lets a person without a role end the sessions in every browser", async () => {
    const email = "waiting@example.com";
    const userId = await system.addUser(email);
    const page = await system.openLink(browser, userId);
    await page.getByText(`You are signed in as ${email}, but you have no role`).waitFor();
    await expectNoSeriousViolations(page);
    const send = await signInElsewhere(userId);
    expect((await send("/api/v1/sessions")).sessions).toHaveLength(2);
    await page.getByRole("button", { name: "Sign out everywhere" }).click();
    await page.getByText("no role in any project").waitFor({ state: "detached" });
    expect(await sessionStatus(page)).toBe(401);
    await expect(send("/api/v1/sessions")).rejects.toThrow("401");
    await page.close();
  });

  type End = (userId: string) => Promise<unknown>;
  const ends: [string, End][] = [
    [
      "the person ends it in another browser",
      async (userId) => {
        const send = await signInElsewhere(userId);
        const { sessions } = await send("/api/v1/sessions");
        const { id } = sessions.find(({ current }: { current: boolean }) => !current);
        await send(`/api/v1/sessions?id=${id}`, { method: "DELETE" });
      },
    ],
    [
      "the operator ends all sessions of the user",
      (userId) =>
        must(
          `${system.gateway.url}/api/v1/organizations/${system.tenant.organizationId}/users/${userId}/sessions`,
          { method: "DELETE", key: operatorToken },
        ),
    ],
  ];
  it.each(ends)("leaves an open page without an action when %s", async (_, end) => {
    const { page, userId } = await signIn(`${randomUUID()}@example.com`, {
      role: "editor",
      scope: { project: system.tenant.projectId },
    });
    await end(userId);
    await page.getByText("Your sign-in has ended").waitFor();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.getByText("New checkout").count()).toBe(0);
    expect(await sessionStatus(page)).toBe(401);
    await page.close();
  });
});
