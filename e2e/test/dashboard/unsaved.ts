import { eventually } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import {
  addPerson,
  createTenant,
  must,
  operatorToken,
  type Tenant,
} from "../../src/system/tenancy.ts";

/** Drafts of a flag that survive navigation, renames, deletions and changes by others. */
export function describeUnsaved(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let flagId: string;
  const api = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const operate = (path: string, method: string, body?: object) =>
    must(api(path), { method, key: operatorToken, ...(body && { body }) });
  const stateIn = (environmentId: string, key = tenant.serverKey) =>
    must(api(`flags/${flagId}/environments/${environmentId}`), { key });
  const environmentPath = (environmentId: string) =>
    `projects/${tenant.projectId}/environments/${environmentId}`;

  const button = (name: string, shown = page) => shown.getByRole("button", { name, exact: true });
  const percentage = (shown = page) =>
    shown.getByRole("textbox", { name: /^Percentage of all users/ });
  const draft = async (text: string, shown = page) => {
    await percentage(shown).fill(text);
    await shown.keyboard.press("Tab");
    await button("Save changes", shown).waitFor();
  };
  const stay = async () => {
    await page.getByRole("heading", { name: "Leave without saving?" }).waitFor();
    await button("Keep editing").click();
    expect(await percentage().inputValue()).toBe("40");
  };
  const open = async (path: string, serverKey = tenant.serverKey) => {
    const opened = await openDashboard(given, { serverKey }, path);
    await percentage(opened).waitFor();
    await opened.getByText("Live", { exact: true }).waitFor();
    return opened;
  };

  beforeEach(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Unsaved" });
    const body = { key: "checkout", name: "Checkout" };
    flagId = (await must(api("flags"), { method: "POST", key: tenant.serverKey, body })).id;
  });
  afterEach(() => page?.close());

  it("asks before another key is used", async () => {
    const other = await createTenant(given().gateway.url, { name: "Elsewhere" });
    page = await open("/flags/checkout");
    const menu = page.getByRole("button", { name: /ada@example.com/ });
    const add = async () => {
      await menu.click();
      await page.getByRole("menuitem", { name: "Use another key" }).click();
      await page.getByLabel("Server key").fill(other.serverKey);
      await page.keyboard.press("Enter");
    };
    await draft("40");
    await add();
    await page.getByRole("heading", { name: "Leave without saving?" }).waitFor();
    await expectNoSeriousViolations(page);
    await button("Keep editing").click();
    await button("Cancel").click();
    expect(await percentage().inputValue()).toBe("40");
    await add();
    await button("Leave without saving").click();
    await page.getByText("Elsewhere · ada@example.com").waitFor();

    await menu.click();
    await page.getByRole("menuitem").filter({ hasText: "Web" }).first().click();
    await page.getByText("Unsaved · ada@example.com").waitFor();
    await draft("40");
    await menu.click();
    await page.getByRole("menuitem").filter({ hasText: "Web" }).last().click();
    await stay();
    await page.getByText("Unsaved · ada@example.com").waitFor();
  });

  it("asks before a dialog with input closes, and closes a dialog without input", async () => {
    page = await openDashboard(given, tenant, "/flags");
    const dialog = page.getByRole("dialog", { name: "Create a flag" });
    const name = dialog.getByLabel("Name");
    const question = page.getByRole("heading", { name: "Discard what you entered?" });
    const dismissals = [() => page.keyboard.press("Escape"), () => page.mouse.click(2, 2)];
    for (const dismiss of dismissals) {
      await button("Create flag").first().click();
      await name.waitFor();
      await dismiss();
      await dialog.waitFor({ state: "detached" });
      await button("Create flag").first().click();
      await name.fill("Half a name");
      await dismiss();
      await question.waitFor();
      await expectNoSeriousViolations(page);
      await button("Keep editing").click();
      expect(await name.inputValue()).toBe("Half a name");
      await dismiss();
      await button("Discard").click();
      await dialog.waitFor({ state: "detached" });
    }
    await button("Create flag").first().click();
    await dialog.getByRole("button", { name: "Type" }).press("ArrowDown");
    await page.getByRole("option").last().click();
    await page.getByRole("listbox").waitFor({ state: "detached" });
    // The focus returns from the list a moment after it closes.
    const focused = dialog.locator(":focus");
    await focused.waitFor();
    await page.keyboard.press("Escape");
    await question.waitFor();
  });

  it("asks before the sign-out and before another environment", async () => {
    page = await open("/flags/checkout");
    await draft("40");
    await button("Sign out").click();
    await stay();
    await page.getByRole("button", { name: "Environment" }).click();
    await page.getByRole("option", { name: "staging" }).click();
    await stay();
    expect(new URL(page.url()).search).toBe("");
    await button("Sign out").click();
    await button("Leave without saving").click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  it("follows a renamed environment, and saves the draft in it", async () => {
    page = await open("/flags/checkout?env=staging");
    await draft("40");
    await operate(environmentPath(tenant.otherEnvironmentId), "PATCH", { name: "preview" });
    await eventually(() => new URL(page.url()).search === "?env=preview");
    expect(await percentage().inputValue()).toBe("40");
    await button("Save changes").click();
    await page.getByText("checkout is saved in preview.").waitFor();
    expect(await stateIn(tenant.otherEnvironmentId)).toMatchObject({ rollout_percentage: 40 });
  });

  it("keeps the environment when another one gets its name", async () => {
    page = await open("/flags/checkout?env=staging");
    await draft("40");
    await page.context().setOffline(true);
    try {
      await page.getByText("Halyard cannot be reached.").first().waitFor();
      await operate(environmentPath(tenant.otherEnvironmentId), "PATCH", { name: "former" });
      await operate(environmentPath(tenant.environmentId), "PATCH", { name: "staging" });
    } finally {
      await page.context().setOffline(false);
    }
    await eventually(() => new URL(page.url()).search === "?env=former");
    expect(await percentage().inputValue()).toBe("40");
  });

  it("says that the environment was deleted, and shows the draft until the person leaves it", async () => {
    page = await open("/flags/checkout?env=staging");
    await draft("40");
    const { otherEnvironmentId: id } = tenant;
    await operate(`${environmentPath(id)}?confirm=${id}`, "DELETE");
    await page.getByText("The environment staging was deleted.").waitFor();
    expect(await percentage().inputValue()).toBe("40");
    await expectNoSeriousViolations(page);
    await button("Discard").click();
    await page.getByText("This project has no environment staging.").waitFor();
    await page.getByRole("button", { name: "Environment" }).click();
    await page.getByRole("option", { name: "production" }).click();
    await percentage().waitFor();
  });

  it("says that the environment was deleted, without a reload, if nothing is unsaved", async () => {
    page = await open("/flags/checkout?env=staging");
    const { otherEnvironmentId: id } = tenant;
    await operate(`${environmentPath(id)}?confirm=${id}`, "DELETE");
    await page.getByText("This project has no environment staging.").waitFor();
  });

  it("keeps the draft of a flag that is deleted", async () => {
    page = await open("/flags/checkout");
    await draft("40");
    await must(api(`flags/${flagId}`), { method: "DELETE", key: tenant.serverKey });
    await page.getByText("The flag checkout was deleted.").waitFor();
    expect(await percentage().inputValue()).toBe("40");
    await button("Discard").click();
    await page.getByRole("heading", { name: "There is no flag checkout" }).waitFor();
  });

  it("shows the draft after the key was revoked, then signs out", async () => {
    page = await open("/flags/checkout");
    await draft("40");
    const keyId = tenant.serverKey.split("_")[1];
    await operate(`${environmentPath(tenant.environmentId)}/keys/${keyId}`, "DELETE");
    await page.getByText("Your key is no longer valid").waitFor();
    expect(await percentage().inputValue()).toBe("40");
    await button("Sign out").click();
    await button("Leave without saving").click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByText("A key is no longer valid").waitFor();
  });

  it("keeps a draft while the person signs in with another key, without the key", async () => {
    page = await open("/flags/checkout");
    await draft("40");
    const keyId = tenant.serverKey.split("_")[1];
    await operate(`${environmentPath(tenant.environmentId)}/keys/${keyId}`, "DELETE");
    await page.getByText("this tab keeps them until then").waitFor();
    await expectNoSeriousViolations(page);
    await button("Sign in again").click();
    await page.getByText("A key is no longer valid").waitFor();
    const kept = await page.evaluate(() => JSON.stringify({ ...sessionStorage }));
    expect(kept).toContain("halyard.draft.");
    expect(kept).not.toContain("hs_");
    await page.reload();
    const stateUrl = api(`flags/${flagId}/environments/${tenant.environmentId}`);
    const key = await addPerson(given().gateway.url, tenant, "grace@example.com");
    await must(stateUrl, { method: "PATCH", key, body: { enabled: true } });
    await page.getByLabel("Server key").fill(key);
    await page.keyboard.press("Enter");
    await page.getByText("Your draft contains these changes now.").waitFor();
    expect(await percentage().inputValue()).toBe("40");
    await button("Save changes").click();
    await page.getByText("checkout is saved in production.").waitFor();
    expect(await stateIn(tenant.environmentId, key)).toMatchObject({
      ...{ enabled: true, rollout_percentage: 40 },
    });
    expect(await page.evaluate(() => JSON.stringify({ ...sessionStorage }))).not.toContain("draft");
  });

  it("forgets a draft that the person discards or leaves", async () => {
    page = await open("/flags/checkout");
    const expectStored = async () => {
      await page.goto(`${given().gateway.url}/flags/checkout`);
      await eventually(async () => (await percentage().inputValue()) === "100");
    };
    await draft("40");
    await button("Discard").click();
    await expectStored();
    await draft("40");
    await page.getByRole("link", { name: "Flags", exact: true }).first().click();
    await button("Leave without saving").click();
    await page.getByRole("heading", { name: "Flags" }).waitFor();
    await expectStored();
  });

  it("warns in the last ten minutes of a key", async () => {
    const issue = async (minutes: number) => {
      const body = {
        ...{ kind: "server", name: "Short", user_id: tenant.userId },
        expires_at: new Date(Date.now() + minutes * 60_000).toISOString(),
      };
      const keys = `${environmentPath(tenant.environmentId)}/keys`;
      return (await operate(keys, "POST", body)).key as string;
    };
    page = await open("/flags/checkout", await issue(30));
    expect(await page.getByText("Your key expires at").count()).toBe(0);
    const ending = await open("/flags/checkout", await issue(9));
    await ending.getByText("Your key expires at").waitFor();
    await expectNoSeriousViolations(ending);
    await ending.close();
  });

  describe("of two people at the same flag", () => {
    let hers: Page;
    const conflict = () => hers.getByRole("alert", { name: "Changed by someone else" });
    const merged = () => hers.getByRole("status", { name: "Changed by someone else" });
    const save = async (shown: Page) => {
      await button("Save changes", shown).click();
      await shown.getByText("checkout is saved in production.").last().waitFor();
    };

    beforeEach(async () => {
      const grace = await addPerson(given().gateway.url, tenant, "grace@example.com");
      page = await open("/flags/checkout");
      hers = await open("/flags/checkout", grace);
    });
    afterEach(() => hers?.close());

    it("keeps both edits of different parts, and shows the one of the first", async () => {
      await draft("60", hers);
      await page.getByRole("switch", { name: "Flag in production" }).press("Space");
      await save(page);
      await merged().getByText("ada@example.com turned checkout on in production").waitFor();
      await expectNoSeriousViolations(hers);
      await save(hers);
      expect(await stateIn(tenant.environmentId)).toMatchObject({
        ...{ enabled: true, rollout_percentage: 60 },
      });
    });

    it("merges after the save is rejected, if the page did not receive the change before", async () => {
      await hers.route("**/changes/stream", (route) => route.abort());
      await hers.reload();
      await draft("60", hers);
      await page.getByRole("switch", { name: "Flag in production" }).press("Space");
      await save(page);
      await button("Save changes", hers).click();
      await merged().waitFor();
      expect(await stateIn(tenant.environmentId)).toMatchObject({ rollout_percentage: 100 });
      await save(hers);
      expect(await stateIn(tenant.environmentId)).toMatchObject({
        ...{ enabled: true, rollout_percentage: 60 },
      });
    });

    it("lets the second to save choose where both changed the same, and applies the choice", async () => {
      const saveBoth = async (his: string, her: string) => {
        await Promise.all([draft(his), draft(her, hers)]);
        await save(page);
        await conflict().getByText("ada@example.com").waitFor();
        const part = hers.getByRole("region", { name: "Conflict: Percentage" });
        expect(await part.innerText()).toMatch(new RegExp(`${her} %\\s+becomes\\s+${his} %`));
        expect(await percentage(hers).inputValue()).toBe(her);
        expect(await button("Save changes", hers).isDisabled()).toBe(true);
      };
      await saveBoth("40", "60");
      await expectNoSeriousViolations(hers);
      await button("Take theirs", hers).click();
      await conflict().waitFor({ state: "detached" });
      expect(await percentage(hers).inputValue()).toBe("40");
      expect(await stateIn(tenant.environmentId)).toMatchObject({ rollout_percentage: 40 });

      await saveBoth("50", "70");
      await button("Keep mine", hers).click();
      await save(hers);
      expect(await stateIn(tenant.environmentId)).toMatchObject({ rollout_percentage: 70 });
      await eventually(async () => (await percentage().inputValue()) === "70");
    });
  });
}
