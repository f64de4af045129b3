import { afterAll, beforeAll, expect, it } from "@jest/globals";
import type { Locator, Page } from "playwright-core";
import { type DashboardSystem, openDashboard } from "../../src/dashboard/dashboard-system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../../src/system/tenancy.ts";

const narrow = { width: 360, height: 740 };
/** Browsers do not break this word unless CSS allows it. */
const longWord = "a".repeat(120);
const longUrl = `https://example.com/${longWord}?id=${longWord}`;

/** The pages on a narrow screen, with content. */
export function describeNarrow(given: () => DashboardSystem): void {
  let tenant: Tenant;
  let page: Page;
  let webhookId: string;
  const api = (path: string) => `${given().gateway.url}/api/v1/${path}`;
  const button = (name: string): Locator => page.getByRole("button", { name, exact: true });

  const keyPages = (): [path: string, action: Locator][] => [
    ["/flags", button("Create flag")],
    ["/flags/checkout-on-one-page", button("Add rule")],
    [
      "/flags/checkout-on-one-page/schedule",
      page.getByRole("spinbutton", { name: "month, Turn on at" }),
    ],
    ["/flags/checkout-on-one-page/history", button("Roll back…")],
    ["/flags/checkout-on-one-page/settings", button("Delete flag")],
    ["/schedules", page.getByRole("link", { name: "checkout-on-one-page" }).first()],
    [
      "/compare?from=staging&to=production",
      page.getByRole("button", { name: "Show the difference of checkout-on-one-page" }),
    ],
    ["/history", page.getByRole("button", { name: /CSV/ })],
    ["/webhooks", button("Create webhook")],
    [`/webhooks/${webhookId}`, button("Send a test")],
    ["/usage", page.getByRole("link", { name: "checkout-on-one-page" }).first()],
    ["/keys", button("Issue key")],
    ["/connect", button("Create a reader key")],
  ];
  const operatorPages = (): [path: string, action: Locator][] => [
    ["/", button("Create organization")],
    [`/organizations/${tenant.organizationId}`, button("Create project")],
    [
      `/organizations/${tenant.organizationId}/projects/${tenant.projectId}`,
      button("Create environment"),
    ],
    ["/status", page.getByText("Connected", { exact: true })],
  ];

  beforeAll(async () => {
    tenant = await createTenant(given().gateway.url, { name: "Narrow" });
    const create = (path: string, body: object) =>
      must(api(path), { method: "POST", key: tenant.serverKey, body });
    const { id } = await create("flags", {
      key: "checkout-on-one-page",
      name: "Checkout on one page",
      description: `Replaces the three steps of the checkout by a single page. See ${longUrl}.`,
      targeting_rules: [
        {
          name: longWord,
          conditions: [
            { attribute: longWord, operator: "equals", value: longUrl },
            { attribute: "id", operator: "in", value: [longWord, longUrl] },
          ],
        },
      ],
    });
    const state = `flags/${id}/environments/${tenant.environmentId}`;
    await must(api(state), { method: "PATCH", key: tenant.serverKey, body: { enabled: true } });
    await create(`flags/${id}/environments/${tenant.otherEnvironmentId}/schedule`, {
      enable_at: "2099-01-01T08:00:00Z",
      disable_at: "2099-01-02T08:00:00Z",
    });
    const webhook = {
      name: `Deployments channel ${longWord}`,
      url: longUrl,
      events: ["flag.toggled"],
      secret: null,
    };
    webhookId = (await create(`projects/${tenant.projectId}/webhooks`, webhook)).id;
    page = await openDashboard(given, tenant);
    await page.setViewportSize(narrow);
  });
  afterAll(() => page?.close());

  /** Throws unless the document fits the window, and the whole action can be scrolled to and pressed. */
  async function expectFits(path: string, action: Locator): Promise<void> {
    await action.click({ trial: true });
    const width = await page.evaluate(() => document.documentElement.scrollWidth);
    const { x = -1, width: wide = 0 } = (await action.boundingBox()) ?? {};
    expect({ path, width, isInside: x >= 0 && x + wide <= narrow.width }).toEqual({
      path,
      width: narrow.width,
      isInside: true,
    });
  }

  it("fit every page of a key without horizontal scrolling, with its main action in reach", async () => {
    for (const [path, action] of keyPages()) {
      await page.goto(`${given().gateway.url}${path}`);
      await expectFits(path, action);
    }
  });

  it("name the project and the environment in the header", async () => {
    const header = page.getByRole("banner").getByRole("paragraph");
    await page.goto(`${given().gateway.url}/flags?env=staging`);
    await header.getByText("Web", { exact: true }).waitFor();
    await header.getByText("staging", { exact: true }).waitFor();
    const name = "a".repeat(60);
    const project = `organizations/${tenant.organizationId}/projects/${tenant.projectId}`;
    await must(api(project), { method: "PATCH", key: operatorToken, body: { name } });
    await header.getByText(name).waitFor();
    await expectFits("/flags of a project with a long name", button("Open the menu"));
  });

  it("open the pages from the menu, which closes after the choice", async () => {
    await button("Open the menu").click();
    expect(await button("Close the menu").getAttribute("aria-expanded")).toBe("true");
    await page.keyboard.press("Escape");
    expect(await button("Open the menu").getAttribute("aria-expanded")).toBe("false");
    await button("Open the menu").click();
    await page.getByRole("link", { name: "Webhooks", exact: true }).click();
    await button("Create webhook").click();
    await expectFits("the dialog", button("Cancel"));
    await page.keyboard.press("Escape");
    expect(await page.getByRole("link", { name: "Usage", exact: true }).isVisible()).toBe(false);
  });

  it("open the links of a description in a new tab, without a reference to the page", async () => {
    await page.goto(`${given().gateway.url}/flags/checkout-on-one-page`);
    const link = page.getByRole("link", { name: longUrl });
    expect(await link.getAttribute("href")).toBe(longUrl);
    expect(await link.getAttribute("rel")).toBe("noopener noreferrer");
    await page.getByRole("button", { name: /^Rule 1:/ }).click();
    await expectFits("an open rule", button("Add condition"));
  });

  it("fit every page of the operator, too", async () => {
    await page.evaluate(() => sessionStorage.clear());
    await page.goto(given().gateway.url);
    await expectFits("sign-in", page.getByLabel("Server key"));
    for (const [path, action] of operatorPages()) {
      // The operator's token is in memory only, so each page is a new sign-in.
      await page.goto(`${given().gateway.url}${path}`);
      await page.getByLabel("Server key").fill(operatorToken);
      await page.keyboard.press("Enter");
      await expectFits(path, action);
    }
  });
}
