import type { ServiceProcess } from "@halyard/testing";
import type { Browser } from "@halyard/testing/chromium";
import type { Page } from "playwright-core";
import { createTenant, must, type Tenant } from "../system/tenancy.ts";
import { startPeopleSystem } from "./people-system.ts";

/** A running system with one organization, whose people sign in to the dashboard by links of the operator. */
export type PeopleTenant = {
  gateway: ServiceProcess;
  publicUrl: string;
  /** An organization with the flag `new-checkout`. */
  tenant: Tenant;
  /** Sends a request of the operator to a route of the organization. */
  operate(path: string, body: object): ReturnType<typeof must>;
  /** Creates a user with a role, and returns the id. */
  addUser(email: string, grant?: object): Promise<string>;
  /** Opens a link of the operator in a new tab, in place of the person who is signed in to this browser. */
  openLink(browser: Browser, userId: string): Promise<Page>;
  close(): Promise<void>;
};

/** Starts a system with an organization of this name, and the dashboard that was built to a folder. */
export async function startPeopleTenant(
  name: string,
  { folder }: { folder: string },
): Promise<PeopleTenant> {
  const system = await startPeopleSystem({ dashboard: folder });
  const { gateway, publicUrl } = system;
  const tenant = await createTenant(gateway.url, { name });
  const flag = { key: "new-checkout", name: "New checkout" };
  await must(`${gateway.url}/api/v1/flags`, { method: "POST", key: tenant.serverKey, body: flag });
  const operate = (path: string, body: object) => system.operate(tenant, path, body);
  return {
    ...{ gateway, publicUrl, tenant, operate },
    async addUser(email, grant) {
      const { id } = await operate("users", { email });
      if (grant !== undefined) await operate("grants", { subject: { user_id: id }, ...grant });
      return id;
    },
    async openLink({ context }, userId) {
      const { url } = await operate("sign-in-links", { user_id: userId });
      await context.clearCookies();
      const page = await context.newPage();
      await page.goto(url);
      return page;
    },
    close: () => system.close(),
  };
}
