import { findFreePort } from "@halyard/local-backends";
import type { ServiceProcess } from "@halyard/testing";
import { startSystem } from "../system/system.ts";
import { must, operatorToken, type Tenant } from "../system/tenancy.ts";

/** A system in which people sign in to the dashboard. */
export type PeopleSystem = {
  gateway: ServiceProcess;
  publicUrl: string;
  /** Sends a request of the operator below an organization. */
  operate(tenant: Tenant, path: string, body: object): ReturnType<typeof must>;
  close(): Promise<void>;
};

type Options = {
  /** The folder of the built dashboard. */
  dashboard: string;
  /** Returns further settings of management. */
  settingsOf?: (publicUrl: string) => Promise<Record<string, string>>;
};

/** Starts a system with a `PUBLIC_URL`. */
export async function startPeopleSystem(options: Options): Promise<PeopleSystem> {
  const port = await findFreePort("127.0.0.1");
  const publicUrl = `http://localhost:${port}`;
  const settings = { PUBLIC_URL: publicUrl, TRUSTED_PROXIES: "127.0.0.1" };
  const management = { ...settings, ...(await options.settingsOf?.(publicUrl)) };
  const system = await startSystem({
    managements: 2,
    schedulers: 1,
    dispatchers: 1,
    meterings: 1,
    edges: 1,
    settings: () => ({
      ...{ management, scheduler: settings },
      ...{ "webhook-dispatcher": settings, "usage-metering": settings },
      dashboard: { DASHBOARD_DIR: options.dashboard },
    }),
  });
  const gateway = await system.startGateway({ port: String(port) });
  return {
    gateway,
    publicUrl,
    operate: ({ organizationId }, path, body) =>
      must(`${gateway.url}/api/v1/organizations/${organizationId}/${path}`, {
        method: "POST",
        key: operatorToken,
        body,
      }),
    close: () => system.close(),
  };
}
