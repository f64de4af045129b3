import { readFileSync } from "node:fs";
import { join } from "node:path";
import type { SystemStatus } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Page } from "playwright-core";
import { expectNoSeriousViolations } from "../../src/dashboard/accessibility.ts";
import {
  collectConsoleErrors,
  type DashboardSystem,
} from "../../src/dashboard/dashboard-system.ts";
import { must, operatorToken } from "../../src/system/tenancy.ts";

const runbooks = join(import.meta.dirname, "../../../docs/runbooks.md");
const organizationName = "Operated Ltd";

/** The pages of the operator: from an empty organization to a working key, and the state of the installation. */
export function describeOperator(given: () => DashboardSystem): void {
  let page: Page;
  let errors: string[];
  const operate = (path: string) =>
    must(`${given().gateway.url}/api/v1/${path}`, { key: operatorToken });
  const dialog = () => page.getByRole("dialog");
  const act = async (subject: string, action: string) => {
    await page.getByRole("button", { name: `Actions for ${subject}` }).click();
    await page.getByRole("menuitem", { name: action }).click();
  };

  beforeAll(async () => {
    page = await given().browser.context.newPage();
    errors = collectConsoleErrors(page);
    await page.goto(given().gateway.url);
    await page.getByLabel("Server key").fill(operatorToken);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Organizations", exact: true }).waitFor();
  });
  afterAll(() => page?.close());

  it("creates an organization with the keyboard, and a user", async () => {
    await page.getByRole("button", { name: "Create organization" }).press("Enter");
    await page.keyboard.type(organizationName);
    await dialog().getByRole("row", { name: "Projects 10" }).waitFor();
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: organizationName }).waitFor();
    await page.getByRole("button", { name: "Create user" }).click();
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.keyboard.press("Enter");
    await dialog().waitFor({ state: "detached" });
    await page.getByRole("cell", { name: "ada@example.com", exact: true }).waitFor();
  });

  it("explains that another user has an e-mail address, and keeps what was typed", async () => {
    await page.getByRole("button", { name: "Create user" }).click();
    await page.getByLabel("E-mail").fill("Ada@example.com");
    await page.keyboard.press("Enter");
    await page.getByText("Another user of the organization has this address.").waitFor();
    expect(await page.getByLabel("E-mail").inputValue()).toBe("Ada@example.com");
    await dialog().getByRole("button", { name: "Cancel" }).click();
  });

  it("shows the limits of both plans before it changes the plan", async () => {
    await page.getByRole("button", { name: "Change plan" }).click();
    await dialog().getByRole("row", { name: "Projects 10" }).waitFor();
    await dialog().getByRole("button", { name: "Plan", exact: false }).first().click();
    await page.getByRole("option", { name: "free" }).click();
    await dialog().getByRole("row", { name: "Projects 10 3 smaller" }).waitFor();
    await dialog().getByRole("row", { name: "Rules of all flags 64 MiB 8 MiB smaller" }).waitFor();
    await dialog().getByRole("button", { name: "Change plan" }).click();
    await page.getByText(`${organizationName} has the plan free.`).waitFor();
    await page.getByRole("heading", { name: "Limits of the free plan" }).waitFor();
    await page.getByText("0 bytes used").waitFor();
  });

  it("issues a key that works, and shows it once", async () => {
    await page.getByRole("button", { name: "Create project" }).click();
    await dialog().getByLabel("Name").fill("Shop");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Shop" }).waitFor();
    await page.getByRole("button", { name: "Issue key" }).click();
    await dialog().getByLabel("Name").fill("Ada's laptop");
    await page.keyboard.press("Enter");
    const serverKey = await dialog().getByText(/^hs_/).innerText();
    const me = await must(`${given().gateway.url}/api/v1/me`, { key: serverKey });
    expect(me).toMatchObject({
      user: { email: "ada@example.com" },
      organization: { name: organizationName, plan: "free" },
      project: { name: "Shop" },
    });
    await page.keyboard.press("Escape");
    await dialog().getByRole("checkbox", { name: "I have copied the key" }).press("Space");
    await dialog().getByText("Close", { exact: true }).click();
    await dialog().waitFor({ state: "detached" });
    expect(await page.content()).not.toContain(serverKey);
    await page.getByText("operator issued the API key Ada's laptop").waitFor();
  });

  it("removes the mark for caution from an environment, and sets it again", async () => {
    const marked = page.getByRole("row", { name: /production Caution/ });
    await act("production", "Remove the mark");
    await marked.waitFor({ state: "detached" });
    await act("production", "Mark with");
    await marked.waitFor();
    await page.getByText("operator marked the environment production with caution").waitFor();
  });

  it("has no serious finding of axe on the page of a project", () =>
    expectNoSeriousViolations(page));

  it("revokes a key, and keeps the focus on the page", async () => {
    await act("Ada's laptop", "Revoke");
    await page.getByLabel("Type the name of the key").fill("Ada's laptop");
    await page.getByRole("button", { name: "Revoke key" }).click();
    await page.getByText("No key works in development").waitFor();
    await eventually(() => page.evaluate(() => document.activeElement?.id === "content"));
  });

  it("says that the plan allows no further project", async () => {
    await page.getByRole("link", { name: organizationName }).click();
    const { organizations } = await operate("organizations");
    const { id } = organizations.find(({ name }: { name: string }) => name === organizationName);
    for (const name of ["Second", "Third"])
      await must(`${given().gateway.url}/api/v1/organizations/${id}/projects`, {
        method: "POST",
        key: operatorToken,
        body: { name },
      });
    await page.getByRole("button", { name: "Create project" }).click();
    await dialog().getByLabel("Name").fill("Fourth");
    await page.keyboard.press("Enter");
    await page.getByText("The plan free allows 3 projects").waitFor();
    await dialog().getByRole("button", { name: "Cancel" }).click();
    await dialog().waitFor({ state: "detached" });
  });

  it("has no serious finding of axe on the page of an organization", () =>
    expectNoSeriousViolations(page));

  it("deletes an organization only after its name is typed", async () => {
    await page.getByRole("button", { name: "Delete organization" }).click();
    const confirm = dialog().getByRole("button", { name: "Delete organization" });
    expect(await confirm.isDisabled()).toBe(true);
    await dialog().getByRole("textbox").fill(organizationName);
    await confirm.click();
    await page.getByText(`${organizationName} is deleted.`).waitFor();
    await page.getByRole("heading", { name: "Organizations", exact: true }).waitFor();
    const { organizations } = await operate("organizations");
    expect(organizations).not.toContainEqual(expect.objectContaining({ name: organizationName }));
    await expectNoSeriousViolations(page);
  });

  it("shows the running processes", async () => {
    await page.getByRole("link", { name: "Status" }).click();
    const { processes } = await operate("status");
    await page.getByText(`${processes.length} of ${processes.length}`).waitFor();
    for (const service of ["sdk-edge", "scheduler", "webhook-dispatcher", "usage-metering"])
      await page.getByRole("row", { name: new RegExp(`^${service} .*Up to date`) }).waitFor();
    await page.getByText("Connected", { exact: true }).waitFor();
    await expectNoSeriousViolations(page);
    expect(errors.filter((text) => !expectedErrors.test(text))).toEqual([]);
  });

  it("names what needs attention, and the section of the runbooks about it", async () => {
    await page.route("**/api/v1/status", async (route) => {
      const response = await route.fetch();
      await route.fulfill({ response, json: withTrouble(await response.json()) });
    });
    try {
      await page.getByText("Processes run different versions").waitFor();
      await page.getByText("A process of scheduler has had old data for 34 s.").waitFor();
      await page.getByText("2 of the last 2 changes needed more than 500 ms").waitFor();
      await page.getByText("1 message could not be processed.").waitFor();
      await page.getByRole("row", { name: /^scheduler .*KV_SCHEDULES .*Differs/ }).waitFor();
      await page.getByRole("row", { name: /^usage.recorded .*Publish it again/ }).waitFor();
      const advice = await page.getByText(/^What to do:/).allInnerTexts();
      expect(advice).toHaveLength(4);
      const sections = readFileSync(runbooks, "utf8").split("\n");
      for (const text of advice) expect(sections).toContain(`## ${/“(.+)”/.exec(text)?.[1]}`);
      await expectNoSeriousViolations(page);
    } finally {
      await page.unrouteAll({ behavior: "wait" });
    }
  });

  it("says that no edge reports while the only one is down", async () => {
    const edge = given().system.edges[0];
    if (edge === undefined) throw new Error("the system has an edge");
    await edge.process.kill();
    try {
      await page.getByText("No process of sdk-edge reports.").waitFor();
    } finally {
      await edge.start();
    }
    await page.getByText("No process of sdk-edge reports.").waitFor({ state: "detached" });
    await page.getByRole("row", { name: /^sdk-edge .*Up to date/ }).waitFor();
  });

  it("shows an outage of the API as such, with the last known state", async () => {
    await page.context().setOffline(true);
    try {
      await page.getByText("Halyard cannot be reached.").waitFor();
      await page.getByText("The figures are from").waitFor();
      await page.getByRole("row", { name: /^sdk-edge / }).waitFor();
    } finally {
      await page.context().setOffline(false);
    }
    await page.getByText("The figures are from").waitFor({ state: "detached" });
  });
}

/** Returns a status with trouble that a short test cannot cause: an old version, old data and a dead letter. */
function withTrouble(status: SystemStatus): SystemStatus {
  const at = new Date().toISOString();
  const late = { committed_at: at, applied_ms: null };
  const trouble = { version: "0.0.9", state: "stale", stale_seconds: 34 } as const;
  return {
    ...status,
    processes: status.processes.map((process) =>
      process.service === "scheduler"
        ? { ...process, ...trouble, stale_streams: ["KV_SCHEDULES"] }
        : process,
    ),
    propagation: { recent: [late, late], median_ms: null, p99_ms: null },
    dead_letters: { count: 1, newest: [{ subject: "usage.recorded", reason: "no such row", at }] },
  };
}

/** The browser logs responses with errors, which two of the tests cause. */
const expectedErrors = /status of (409|429)/;
