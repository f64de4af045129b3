import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { ensureDashboard } from "../../deploy/local/src/dashboard-build.ts";
import { expectNoSeriousViolations } from "../src/dashboard/accessibility.ts";
import { type PeopleTenant, startPeopleTenant } from "../src/dashboard/people-tenant.ts";
import { must } from "../src/system/tenancy.ts";

const narrow = { width: 360, height: 740 };
const wide = { width: 1_280, height: 720 };
/** Time for a rebased request to be looked at and approved before it is applied. */
const untilAppliedMs = 30_000;

describeInChromium("given three people and an environment that is protected", () => {
  let system: PeopleTenant;
  let browsers: Browser[];
  /** An admin, an approver, and an editor of the project. */
  let anna: Page;
  let ben: Page;
  let eve: Page;

  beforeAll(async () => {
    const { folder } = await ensureDashboard();
    [system, ...browsers] = await Promise.all([
      startPeopleTenant("Change requests", { folder }),
      ...["anna", "ben", "eve"].map(() => startChromium()),
    ]);
    await addFlags();
    const scope = { project: system.tenant.projectId };
    const roles = { anna: "admin", ben: "approver", eve: "editor" };
    const pages = Object.entries(roles).map(async ([name, role], index) => {
      const id = await system.addUser(`${name}@example.com`, { role, scope });
      return system.openLink(browsers[index] as Browser, id);
    });
    [anna, ben, eve] = (await Promise.all(pages)) as [Page, Page, Page];
    await Promise.all([anna, ben, eve].map((page) => flagSwitch(page).waitFor()));
  }, 180_000);
  afterAll(async () => {
    await Promise.all((browsers ?? []).map((browser) => browser.close()));
    await system?.close();
  });

  const api = (path: string, method = "GET", body?: object) =>
    must(`${system.gateway.url}/api/v1/${path}`, {
      ...{ method, key: system.tenant.serverKey },
      ...(body && { body }),
    });
  /** Adds a flag with values, and a flag whose rule in production uses an audience. */
  async function addFlags(): Promise<void> {
    const country = (value: string) => [{ attribute: "country", operator: "equals", value }];
    const match = [country("DE"), country("AT")];
    await api("audiences", "POST", { key: "beta", name: "Beta", match });
    const variations = [
      { key: "blue", value: "#00f" },
      { key: "red", value: "#f00" },
    ];
    await api("flags", "POST", { key: "color", name: "Color", value_type: "string", variations });
    const search = await api("flags", "POST", { key: "search", name: "Search" });
    const rules = [{ name: "beta", conditions: [{ audience: "beta" }] }];
    const path = `flags/${search.id}/environments/${system.tenant.environmentId}`;
    await api(path, "PATCH", { targeting_rules: rules });
  }
  const button = (page: Page | Locator, name: string) =>
    page.getByRole("button", { name, exact: true });
  const flagSwitch = (page: Page) =>
    page.getByRole("switch", { name: "new-checkout in production", exact: true });
  const heading = (page: Page, name: string) => page.getByRole("heading", { name, level: 1 });
  const status = (page: Page, text: string, timeout = 30_000) =>
    page.locator("header").getByText(text, { exact: true }).waitFor({ timeout });
  const openLink = (page: Page, name: string) =>
    page.getByRole("link", { name, exact: true }).click();
  const scrollWidth = (page: Page) => page.evaluate(() => document.documentElement.scrollWidth);
  const flagState = async () => {
    const { flags } = await api("flags?key=new-checkout");
    return api(`flags/${flags[0].id}/environments/${system.tenant.environmentId}`);
  };
  const enterTime = async (page: Page, label = "Apply at") => {
    await page.getByRole("spinbutton", { name: `month, ${label}` }).focus();
    await page.keyboard.type("010120990900A");
  };
  async function edit(page: Page, enter: () => Promise<void>): Promise<void> {
    await button(page, "Edit…").click();
    await enter();
    const dialog = page.getByRole("dialog", { name: "Edit the request" });
    await button(dialog, "Save").click();
    await dialog.waitFor({ state: "detached" });
  }

  /** Proposes the change in the dialog, and opens the page of the request. */
  async function request(page: Page, reason: string): Promise<string> {
    const dialog = page.getByRole("dialog", { name: "Request the change" });
    await dialog.getByLabel("Reason").fill(reason);
    await button(dialog, "Request the change").click();
    await button(page, "Show the request").click();
    await page.getByText(reason).waitFor();
    return new URL(page.url()).pathname;
  }
  /** Requests another percentage, as the admin. */
  async function requestPercentage(percentage: string, reason: string): Promise<void> {
    await openPath(anna, "/flags/new-checkout?env=production");
    await anna.getByRole("textbox", { name: "Percentage of all users" }).fill(percentage);
    await button(anna, "Request the change").click();
    await request(anna, reason);
  }
  const openPath = (page: Page, path: string) => page.goto(`${system.publicUrl}${path}`);

  it("is protected by an admin in two clicks", async () => {
    await openLink(anna, "Environments");
    await button(anna, "Protect production").click();
    const dialog = anna.getByRole("dialog", { name: "Protect production" });
    await dialog.getByText("Turning one flag off needs no approval").waitFor();
    await expectNoSeriousViolations(anna);
    await button(dialog, "Protect").click();
    await anna.getByText("production is protected.").waitFor();
    await anna
      .getByRole("row", { name: /production/ })
      .getByText("1 approval, none for turning one flag off")
      .waitFor();
    await eve.getByText("Changes need approval").waitFor();
  });

  describe("a change of the targeting", () => {
    let path: string;

    it("is requested with a title in words, and leaves the flag as it is", async () => {
      await openLink(eve, "new-checkout");
      await eve.getByRole("switch", { name: "Flag in production" }).click();
      await eve.getByRole("button", { name: "Request the change" }).click();
      const dialog = eve.getByRole("dialog", { name: "Request the change" });
      expect(await dialog.getByLabel("Title").inputValue()).toBe(
        "new-checkout in production: turned on",
      );
      await expectNoSeriousViolations(eve);
      path = await request(eve, "The tests of the checkout passed.");
      await heading(eve, "new-checkout in production: turned on").waitFor();
      await eve.getByText("production: 0 of 1 approval").waitFor();
      await eve.getByText("Approvals are missing: 1 more").first().waitFor();
    });

    it("is offered first to a reviewer, who approves it", async () => {
      await ben.getByRole("link", { name: "Change requests 1 pending" }).click();
      const item = ben
        .getByRole("main")
        .getByRole("listitem")
        .filter({ hasText: "new-checkout in production" });
      await item.getByText("You can approve").waitFor();
      await item.getByText("new-checkout in production: turned on").waitFor();
      await expectNoSeriousViolations(ben);
      await item.getByRole("link").click();
      await button(ben, "Approve").click();
      await ben.getByText("Approved by you").waitFor();
      await eve.getByText("Approved by ben@example.com").waitFor();
      await expectNoSeriousViolations(eve);
    });

    it("loses its approval by an edit, and the open page of the reviewer says so", async () => {
      await edit(eve, () => enterTime(eve));
      await ben.getByText("The content has changed since you opened this page.").waitFor();
      await status(ben, "Open");
      const approve = button(ben, "Approve");
      expect(await approve.getAttribute("aria-disabled")).toBe("true");
      await expectNoSeriousViolations(ben);
      await button(ben, "I have looked at it").click();
      await approve.click();
      await ben.getByText("Approved by you").waitFor();
      await status(eve, "Approved");
    });

    it("becomes stale by an approved request of somebody else, and shows both values", async () => {
      await requestPercentage("40", "The checkout is too slow for everybody.");
      const other = await ben.context().newPage();
      await openPath(other, new URL(anna.url()).pathname);
      await button(other, "Approve").click();
      await other.getByText("Approved by you").waitFor();
      await other.close();
      await button(anna, "Apply").click();
      await status(anna, "Applied");

      await status(eve, "Stale");
      await eve.getByRole("list", { name: "Changed since" }).waitFor();
      const since = eve.getByRole("list", { name: "Changes of new-checkout in production since" });
      await since.getByText("100 %").waitFor();
      await since.getByText("40 %").waitFor();
      await expectNoSeriousViolations(eve);
    });

    it("is rebased, approved again, and applied at its time", async () => {
      await button(eve, "Rebase").click();
      await status(eve, "Open");
      expect(await eve.getByRole("list", { name: "Approvals" }).count()).toBe(0);
      const appliesAt = Date.now() + untilAppliedMs;
      // The dialog has times of whole minutes.
      const edited = await eve.request.patch(`${system.publicUrl}/api/v1${path}`, {
        headers: {
          ...{ origin: system.publicUrl },
          "halyard-environment": system.tenant.environmentId,
        },
        data: { apply_at: new Date(appliesAt).toISOString() },
      });
      expect(edited.status()).toBe(200);
      await ben.getByRole("list", { name: "Changed content" }).getByText("Time").waitFor();
      await button(ben, "I have looked at it").click();
      await button(ben, "Approve").click();
      await status(eve, "Approved");
      expect(await button(eve, "Apply").getAttribute("aria-disabled")).toBe("true");
      expect([Date.now() < appliesAt, (await flagState()).enabled]).toEqual([true, false]);
      await status(eve, "Applied", 2 * untilAppliedMs);
      expect(Date.now()).toBeGreaterThan(appliesAt);
      await eve.getByText("Applied at its time").waitFor();
      await status(ben, "Applied");
      expect(await flagState()).toMatchObject({ enabled: true, rollout_percentage: 40 });
      const log = eve.getByRole("list", { name: "What happened" });
      await log.getByText("rebased the change request").waitFor();
      await log.getByText("turned new-checkout on in production").waitFor();
    });
  });

  it("is changed without the approvals by an admin with a reason", async () => {
    await requestPercentage("30", "The checkout is slow again.");
    await button(anna, "Bypass the approval…").click();
    const dialog = anna.getByRole("dialog", { name: "Bypass the approval" });
    await dialog.getByLabel("Reason").fill("Both approvers are on a flight.");
    await expectNoSeriousViolations(anna);
    await button(dialog, "Apply without approvals").click();
    await anna.getByText("Applied without the approvals", { exact: true }).waitFor();
    await anna.getByText("Reason: Both approvers are on a flight.").waitFor();
    await status(anna, "Applied");
    await expectNoSeriousViolations(anna);
    expect(await flagState()).toMatchObject({ enabled: true, rollout_percentage: 30 });
  });

  it("turns a flag off at once, which makes a pending request stale", async () => {
    await openPath(eve, "/flags/new-checkout?env=production");
    await eve.getByRole("textbox", { name: "Percentage of all users" }).fill("60");
    await button(eve, "Request the change").click();
    const path = await request(eve, "The checkout is fast again.");
    await openPath(ben, "/flags?env=production");
    await flagSwitch(ben).click();
    // The mark "Caution" of the environment asks first.
    await button(ben.getByRole("dialog"), "Turn off").click();
    await ben.getByText("new-checkout is off in production.").waitFor();
    expect(await flagState()).toMatchObject({ enabled: false });
    await status(eve, "Stale");
    await openPath(ben, path);
    await button(ben, "Reject…").click();
    const dialog = ben.getByRole("dialog", { name: "Reject the request" });
    await dialog.getByLabel("Comment").fill("Wait for the end of the sale.");
    await button(dialog, "Reject").click();
    await eve.getByText("Rejected by ben@example.com: Wait for the end of the sale.").waitFor();
  });

  it("shows in the history what a change request made, and bypasses", async () => {
    await openPath(anna, "/history");
    const made = anna
      .getByRole("main")
      .getByRole("listitem")
      .filter({ hasText: "set the percentage of" });
    await made.getByText("by a change request without its approvals").waitFor();
    await anna.getByText("bypassed the approval of the change request").first().waitFor();
    const turned = anna
      .getByRole("main")
      .getByRole("listitem")
      .filter({ hasText: "new-checkout on in production" });
    const link = turned.getByRole("link", { name: "by a change request" });
    await expectNoSeriousViolations(anna);
    await link.click();
    await heading(anna, "new-checkout in production: turned on").waitFor();
  });

  describe("every other change of what the environment answers is requested", () => {
    const open = (path: string) => openPath(eve, `${path}?env=production`);
    const ask = () => button(eve, "Request the change").click();
    const expectOpen = async (text: string) => {
      await request(eve, "For the test.");
      await status(eve, "Open");
      await eve.getByText(text).first().waitFor();
      await eve.getByText("production: 0 of 1 approval").waitFor();
    };

    it("by the switch in the list", async () => {
      await open("/flags");
      await flagSwitch(eve).click();
      await expectOpen("Turn new-checkout on in production");
      expect(await flagState()).toMatchObject({ enabled: false });
    });

    it("by an earlier state", async () => {
      await open("/flags/new-checkout/history");
      await eve
        .getByRole("button", { name: /^Restore/ })
        .first()
        .click();
      await eve.getByRole("dialog").getByRole("button", { name: "Request the change" }).click();
      await expectOpen("new-checkout in production: turned on");
    });

    it("by a schedule, which is a request with a time", async () => {
      await open("/flags/search/schedule");
      await enterTime(eve, "Turn on at");
      await ask();
      await expectOpen("Jan 1, 2099");
    });

    it("by other values", async () => {
      await open("/flags/color/variations");
      const variation = eve.getByRole("group", { name: "Variation 1" });
      await variation.getByRole("textbox", { name: "Value" }).fill("#008");
      await ask();
      await expectOpen('"#008"');
      const { flags } = await api("flags?key=color&include=values");
      expect(JSON.stringify(flags)).toContain("#00f");
    });

    it("by conditions and entries of an audience that a flag uses", async () => {
      await open("/audiences/beta");
      await eve.getByText("Flags in production use this audience").waitFor();
      await button(eve, "Remove Alternative 2").click();
      await ask();
      await expectOpen("Used by search in production.");
      await open("/audiences/beta");
      await eve.getByLabel("One entry").fill("user-42");
      await button(eve, "Request to add").click();
      await expectOpen("Add 1 entry to the list of beta");
      expect(await api("audiences/beta")).toMatchObject({ list: null, match: { length: 2 } });
    });

    it("by a copy of several flags, in one request", async () => {
      await openPath(eve, "/compare?from=staging&to=production");
      await button(eve, "Choose all shown").click();
      await button(eve, "Copy to production").click();
      await eve.getByRole("dialog").getByRole("button", { name: "Request the change" }).click();
      await expectOpen("2 changes");
    });

    it("by the deletion of a flag", async () => {
      await open("/flags/color/settings");
      await button(eve, "Delete flag").click();
      const dialog = eve.getByRole("dialog");
      await dialog.getByLabel("Type the key of the flag").fill("color");
      await button(dialog, "Request the deletion").click();
      await expectOpen("Deletion of color");
      await expectNoSeriousViolations(eve);
    });
  });

  it("lets an editor of another environment request, and not change", async () => {
    const { projectId, otherEnvironmentId } = system.tenant;
    const kim = await system.addUser("kim@example.com", {
      role: "editor",
      scope: { project: projectId, environments: [otherEnvironmentId] },
    });
    await eve.close();
    eve = await system.openLink(browsers[2] as Browser, kim);
    await eve.getByRole("switch", { name: "new-checkout in staging" }).waitFor();
    await openPath(eve, "/flags?env=production");
    await flagSwitch(eve).click();
    await request(eve, "Staging has it for a week.");
    expect(await button(eve, "Approve").getAttribute("aria-disabled")).toBe("true");
    expect(await flagState()).toMatchObject({ enabled: false });
  });

  it("approves no content that the reviewer has not seen, without live changes either", async () => {
    await ben.route("**/changes/stream", (route) => route.abort());
    await openPath(ben, new URL(eve.url()).pathname);
    await button(ben, "Approve").waitFor();
    await edit(eve, () => enterTime(eve));
    await button(ben, "Approve").click();
    await ben.getByText("The content has changed since you opened this page.").waitFor();
    expect(await button(ben, "Approve").getAttribute("aria-disabled")).toBe("true");
    expect(await ben.getByRole("list", { name: "Approvals" }).count()).toBe(0);
  });

  it("makes a change request of a lower protection", async () => {
    await openPath(anna, "/environments");
    await button(anna, "Change the protection of production").click();
    const dialog = anna.getByRole("dialog", { name: "Protection of production" });
    await dialog.getByRole("button", { name: /Approvals$/ }).click();
    await anna.getByRole("option", { name: "Not protected" }).click();
    await button(dialog, "Request the change").click();
    await anna.waitForURL(/\/change-requests\//);
    await anna.getByText("production: 0 of 1 approval").waitFor();
    await anna.getByRole("heading", { name: "Protection of production" }).waitFor();
  });

  it("fits a narrow window without horizontal scrolling", async () => {
    await anna.setViewportSize(narrow);
    const widths = [await scrollWidth(anna)];
    await openPath(anna, "/change-requests?status=all");
    await anna.getByRole("list", { name: "Change requests" }).waitFor();
    widths.push(await scrollWidth(anna));
    await openPath(anna, "/environments");
    await button(anna, "Change the protection of production").click({ trial: true });
    widths.push(await scrollWidth(anna));
    await anna.setViewportSize(wide);
    expect(widths).toEqual([narrow.width, narrow.width, narrow.width]);
  });
});
