import { call, type ServiceProcess } from "@halyard/testing";
import type { Browser } from "@halyard/testing/chromium";
import type { Page } from "playwright-core";
import type { ClientSystem } from "../system/client-system.ts";
import type { Tenant } from "../system/tenancy.ts";

/** A running system whose gateway serves the dashboard, and a browser. */
export type DashboardSystem = ClientSystem & { gateway: ServiceProcess; browser: Browser };

/** The `sessionStorage` entry that holds the keys of a tab. */
const storageKey = "halyard.keys";

/**
 * Opens the dashboard in a new tab, signed in with the tenant's server key. Changes in the key's environment need no
 * confirmation.
 */
export async function openDashboard(
  given: () => DashboardSystem,
  tenant: Pick<Tenant, "serverKey">,
  path = "/",
): Promise<Page> {
  const { gateway, browser } = given();
  await markCaution(gateway.url, tenant, false);
  const page = await browser.context.newPage();
  await page.goto(`${gateway.url}/favicon.svg`);
  await page.evaluate(
    ([key, token]) =>
      sessionStorage.setItem(key, JSON.stringify({ tokens: [token], current: token })),
    [storageKey, tenant.serverKey] as const,
  );
  await page.goto(`${gateway.url}${path}`);
  return page;
}

/** Texts of the errors that a page writes to its console, such as violations of the content security policy. */
export function collectConsoleErrors(page: Page): string[] {
  const errors: string[] = [];
  page.on("console", (message) => {
    if (message.type() === "error") errors.push(`${message.text()} ${message.location().url}`);
  });
  page.on("pageerror", (error) => errors.push(error.message));
  return errors;
}

/**
 * Sets or removes the mark of the key's environment. A key of one environment may not change it, and nothing changes
 * while management is down: an earlier page of the tenant has removed the mark.
 */
export async function markCaution(
  url: string,
  { serverKey: key }: Pick<Tenant, "serverKey">,
  caution: boolean,
): Promise<void> {
  const { status, body } = await call(`${url}/api/v1/me`, { key });
  if (status !== 200) return;
  const environment = `${url}/api/v1/projects/${body.project.id}/environments/${body.key.environment_id}`;
  await call(environment, { method: "PATCH", key, body: { caution } });
}
