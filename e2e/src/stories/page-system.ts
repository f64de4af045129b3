import { findFreePort } from "@halyard/local-backends";
import { type System, startSystem } from "../system/system.ts";
import { createTenant, type Tenant } from "../system/tenancy.ts";
import { demoOf, openPageShell, type PageShell } from "./page-shell.ts";

/** A system with every service and a gateway, for tests that follow pages. Each page has its own tenant. */
export type PageSystem = {
  system: System;
  gatewayUrl: string;
  createTenant(name: string, plan?: string): Promise<Tenant>;
  /** Opens a shell with the demo file of a tenant. */
  openShell(tenant: Tenant): PageShell;
  close(): Promise<void>;
};

export async function startPageSystem(): Promise<PageSystem> {
  const port = await findFreePort("127.0.0.1");
  const forPeople = { PUBLIC_URL: `http://localhost:${port}`, TRUSTED_PROXIES: "127.0.0.1" };
  const system = await startSystem({
    ...{ managements: 1, schedulers: 1, dispatchers: 1, meterings: 1, edges: 1 },
    settings: () => ({
      ...{ management: forPeople, scheduler: forPeople },
      "sdk-edge": { STREAM_TOKEN_SECRET: "this signs the tokens of the pages" },
    }),
  });
  const { url: gatewayUrl } = await system.startGateway({ port: String(port) });
  const shells: PageShell[] = [];
  return {
    system,
    gatewayUrl,
    createTenant: (name, plan) =>
      createTenant(gatewayUrl, { name, ...(plan === undefined ? {} : { plan }) }),
    openShell(tenant) {
      const shell = openPageShell(demoOf(tenant, gatewayUrl));
      shells.push(shell);
      return shell;
    },
    async close() {
      for (const shell of shells) shell.close();
      await system.close();
    },
  };
}
