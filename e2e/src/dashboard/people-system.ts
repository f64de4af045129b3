import { createServer } from "node:net";
import type { ServiceProcess } from "@halyard/testing";
import type { Browser } from "@halyard/testing/chromium";
import type { Page } from "playwright-core";
import { type System, startSystem } from "../system/system.ts";
import { createTenant, must, operatorToken, type Tenant } from "../system/tenancy.ts";

/** A running system with `PUBLIC_URL`, whose people sign in to the dashboard by links of the operator. */
export type PeopleSystem = {
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

/** Returns a free port. `PUBLIC_URL` must be set before the gateway starts. */
async function freePort(): Promise<number> {
  const server = createServer();
  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const { port } = server.address() as { port: number };
  await new Promise((resolve) => server.close(resolve));
  return port;
}

function startServices(publicUrl: string, dashboardFolder: string): Promise<System> {
  const settings = { PUBLIC_URL: publicUrl, TRUSTED_PROXIES: "127.0.0.1" };
  return startSystem({
    managements: 2,
    schedulers: 1,
    dispatchers: 1,
    meterings: 1,
    edges: 1,
    settings: () => ({
      ...{ management: settings, scheduler: settings },
      ...{ "webhook-dispatcher": settings, "usage-metering": settings },
      dashboard: { DASHBOARD_DIR: dashboardFolder },
    }),
  });
}

/** Starts a system with an organization of this name, and the dashboard that was built to a folder. */
export async function startPeopleSystem(
  name: string,
  { folder }: { folder: string },
): Promise<PeopleSystem> {
  const port = await freePort();
  const publicUrl = `http://localhost:${port}`;
  const system = await startServices(publicUrl, folder);
  const gateway = await system.startGateway({ port: String(port) });
  const tenant = await createTenant(gateway.url, { name });
  const flag = { key: "new-checkout", name: "New checkout" };
  await must(`${gateway.url}/api/v1/flags`, { method: "POST", key: tenant.serverKey, body: flag });
  const operate = (path: string, body: object) =>
    must(`${gateway.url}/api/v1/organizations/${tenant.organizationId}/${path}`, {
      ...{ method: "POST", key: operatorToken, body },
    });
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
