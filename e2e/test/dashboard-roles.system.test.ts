import { eventually } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { ensureDashboard } from "../../deploy/local/src/dashboard-build.ts";
import { expectNoSeriousViolations } from "../src/dashboard/accessibility.ts";
import { type PeopleTenant, startPeopleTenant } from "../src/dashboard/people-tenant.ts";

const narrow = { width: 360, height: 740 };

describeInChromium("given an owner who manages people in the dashboard", () => {
  let system: PeopleTenant;
  let browser: Browser;
  let otherBrowser: Browser;
  let page: Page;

  beforeAll(async () => {
    [system, browser, otherBrowser] = await Promise.all([
      startPeopleTenant("Roles", await ensureDashboard()),
      startChromium(),
      startChromium(),
    ]);
    const owner = await system.addUser("owner@example.com", {
      ...{ role: "owner", scope: { organization: system.tenant.organizationId } },
    });
    page = await system.openLink(browser, owner);
    await page.getByRole("link", { name: "People" }).click();
    await rowOf("owner@example.com").waitFor();
  }, 120_000);
  afterAll(async () => {
    await Promise.all([browser?.close(), otherBrowser?.close()]);
    await system?.close();
  });

  const inProject = (role: string, environments?: string[]) => ({
    role,
    scope: { project: system.tenant.projectId, ...(environments && { environments }) },
  });
  const button = (name: string | RegExp, within: Page | Locator = page) =>
    within.getByRole("button", { name, exact: true });
  const rowOf = (email: string) =>
    page
      .getByRole("region", { name: "Users", exact: true })
      .last()
      .getByRole("row", { name: email });
  const choose = async (dialog: Locator, label: string, option: string) => {
    await dialog.getByRole("button", { name: new RegExp(`${label}$`) }).click();
    await dialog
      .page()
      .getByRole("option", { name: new RegExp(`^${option}`) })
      .click();
  };
  const choiceOf = async (dialog: Locator, label: string): Promise<string[]> => {
    await dialog.getByRole("button", { name: new RegExp(`${label}$`) }).click();
    const options = await dialog.page().getByRole("option").allInnerTexts();
    await dialog.page().keyboard.press("Escape");
    return options.map((text) => text.split("\n")[0] ?? "");
  };
  const openAction = async (email: string, action: string) => {
    await button(`Actions for ${email}`).click();
    await page.getByRole("menuitem", { name: action }).click();
  };

  describe("the page", () => {
    it("invites a person, and shows the link once", async () => {
      await button("Invite").click();
      const dialog = page.getByRole("dialog", { name: "Invite a person" });
      await dialog.getByLabel("E-mail").fill("grace@example.com");
      await choose(dialog, "Where", "Web");
      await choose(dialog, "Environments", "Only chosen environments");
      await dialog.getByText("staging").click();
      await choose(dialog, "Role", "Editor");
      await dialog.getByText("May change flags in staging of Web, and view production.").waitFor();
      await expectNoSeriousViolations(page);
      await button("Create invitation", dialog).click();
      const link = page.getByRole("dialog", { name: "The invitation of grace@example.com" });
      await link.getByText("The link works once, within 24 hours").waitFor();
      expect(await link.locator("pre").innerText()).toContain(`${system.publicUrl}/`);
      await button("Copy", link).waitFor();
      await expectNoSeriousViolations(page);
      await link.getByText("I have copied the link").click();
      await button("Close", link).last().click();
      await rowOf("grace@example.com").getByText("Not yet").waitFor();
    });

    it("withdraws an invitation, and keeps the user", async () => {
      await button("Withdraw the invitation of grace@example.com").click();
      await page.getByText("There are no open invitations.").waitFor();
      await rowOf("grace@example.com").getByText("May change flags in staging of Web").waitFor();
    });

    it("deletes a user after naming what ends", async () => {
      await openAction("grace@example.com", "Delete…");
      const dialog = page.getByRole("dialog", { name: "Delete grace@example.com?" });
      await dialog.getByText("All API keys of this user are revoked").waitFor();
      await dialog.getByText("Access to this organization ends within a second").waitFor();
      await dialog.getByLabel("Type the e-mail address").fill("grace@example.com");
      await button("Delete user", dialog).click();
      await rowOf("grace@example.com").waitFor({ state: "detached" });
    });

    it("keeps the last owner, and says what to do", async () => {
      await button(/^Revoke of owner@example.com/).click();
      const dialog = page.getByRole("dialog");
      await button("Revoke role", dialog).click();
      await dialog.getByText("This is the last owner of the organization").waitFor();
      await dialog.getByText("Give another person the role owner").waitFor();
      await button("Cancel", dialog).click();
    });

    it("says that groups have no roles where the organization maps none", async () => {
      await button("Give a role").click();
      const dialog = page.getByRole("dialog", { name: "Give a role" });
      await choose(dialog, "For", "A group");
      await dialog.getByLabel("Group", { exact: true }).fill("release-managers");
      await button("Give role", dialog).click();
      await dialog.getByText("This organization does not map groups.").waitFor();
      await button("Cancel", dialog).click();
      expect(await page.getByRole("heading", { name: "Groups" }).count()).toBe(0);
    });

    it("shows the audit log in words, with the way of signing in", async () => {
      const log = page.getByRole("list", { name: "Audit log of people" });
      await log.getByText("deleted the user grace@example.com").waitFor();
      const text = await log.innerText();
      expect(text).toContain("invited grace@example.com");
      expect(text).toMatch(/owner@example\.com signed in, with the operator's link/);
      await expectNoSeriousViolations(page);
    });

    it("fits a narrow window without horizontal scrolling", async () => {
      await page.setViewportSize(narrow);
      const width = await page.evaluate(() => document.documentElement.scrollWidth);
      await button("Invite").click({ trial: true });
      await button("Give a role").click();
      const dialog = page.getByRole("dialog");
      await button("Cancel", dialog).click({ trial: true });
      const inDialog = await dialog.evaluate(({ scrollWidth, clientWidth }) => ({
        ...{ scrollWidth, clientWidth },
      }));
      await page.keyboard.press("Escape");
      await page.setViewportSize({ width: 1_280, height: 720 });
      expect(width).toBe(narrow.width);
      expect(inDialog.scrollWidth).toBe(inDialog.clientWidth);
    });
  });

  describe("the page of another person", () => {
    it("loses a right that the owner revokes, without a reload", async () => {
      const { otherEnvironmentId: staging } = system.tenant;
      const bob = await system.addUser("bob@example.com", inProject("viewer"));
      await system.operate("grants", {
        ...{ subject: { user_id: bob }, ...inProject("editor", [staging]) },
      });
      const theirs = await system.openLink(otherBrowser, bob);
      const toggle = theirs.getByRole("switch", { name: "new-checkout in staging" });
      await toggle.waitFor();
      await eventually(() => toggle.isEnabled());

      await page.reload();
      await button(/^Revoke of bob@example.com: May change flags in staging/).click();
      const dialog = page.getByRole("dialog");
      await dialog.getByText("ends within a second").waitFor();
      await button("Revoke role", dialog).click();
      await dialog.waitFor({ state: "detached" });
      const rejected = theirs.getByText("This needs the role editor in this environment");
      // A process of management can have the role for up to a second.
      await eventually(async () => {
        if (await rejected.isVisible()) return true;
        await toggle.press("Space");
        return false;
      });
      await eventually(() => toggle.isDisabled());

      await button("Revoke of bob@example.com: May view Web").click();
      await button("Revoke role", page.getByRole("dialog")).click();
      await theirs.getByText("or you no longer have a role in the project").waitFor();
      await theirs.close();
    });
  });

  describe("an admin of one environment", () => {
    it("is offered only the roles and environments that the person may give", async () => {
      const { otherEnvironmentId: staging } = system.tenant;
      const carol = await system.addUser("carol@example.com", inProject("admin", [staging]));
      const theirs = await system.openLink(otherBrowser, carol);
      await theirs.getByRole("link", { name: "People" }).click();
      await theirs.getByText("You give roles where you are an admin.").waitFor();
      expect(await button("Invite", theirs).isDisabled()).toBe(true);
      await button("Give a role", theirs).click();
      const dialog = theirs.getByRole("dialog", { name: "Give a role" });
      await dialog.getByText("production (your role is viewer)").waitFor();
      expect(await dialog.getByRole("checkbox", { name: /production/ }).isDisabled()).toBe(true);
      expect(await choiceOf(dialog, "Where")).toEqual(["Web"]);
      expect(await choiceOf(dialog, "Environments")).toEqual(["Only chosen environments"]);
      await dialog.getByText("staging").click();
      expect(await choiceOf(dialog, "Role")).toEqual(["Editor", "Approver", "Admin"]);
      await expectNoSeriousViolations(theirs);
      await choose(dialog, "User", "bob@example.com");
      await button("Give role", dialog).click();
      await dialog.waitFor({ state: "detached" });
      await theirs
        .getByRole("row", { name: "bob@example.com" })
        .getByText("May change flags in staging of Web, and view production")
        .waitFor();
      await theirs.close();
    });
  });

  describe("a service user", () => {
    it("gets a role and a key that only reads", async () => {
      await button("Create service user").click();
      const dialog = page.getByRole("dialog", { name: "Create a service user" });
      await dialog.getByLabel("E-mail").fill("ci@example.com");
      await button("Create service user", dialog).click();
      await rowOf("ci@example.com").getByText("Never: only by API key").waitFor();
      await page.getByRole("link", { name: "API keys" }).click();
      await button("Issue key").click();
      const form = page.getByRole("dialog");
      await choose(form, "Scope", "Read");
      await choose(form, "User", "ci@example.com");
      await form.getByLabel("Name").fill("Pipeline");
      await button("Issue key", form).click();
      await page.getByText("I have copied the key").click();
      await button("Close", page.getByRole("dialog")).last().click();
      const row = page.getByRole("row", { name: /Pipeline/ });
      await row.getByText("ci@example.com").waitFor();
      await row.getByText("Reads the whole project.").waitFor();
    });
  });

  it("shows in the history how people were signed in", async () => {
    await page.getByRole("link", { name: "History" }).click();
    const issued = page.getByRole("listitem").filter({ hasText: "issued the API key Pipeline" });
    await issued.getByText("with the operator's link").waitFor();
    const created = page.getByRole("listitem").filter({ hasText: "created new-checkout" });
    await created.getByText("by the key server").waitFor();
    await page.goto(`${system.publicUrl}/flags/new-checkout/history`);
    const states = page.getByRole("list", { name: "States of new-checkout in production" });
    await states.getByText("by the key server").waitFor();
  });
});
