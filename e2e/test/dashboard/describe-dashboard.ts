import type { ServiceProcess } from "@halyard/testing";
import { type Browser, describeInChromium, startChromium } from "@halyard/testing/chromium";
import { afterAll, beforeAll } from "@jest/globals";
import { ensureDashboard } from "../../../deploy/local/src/dashboard-build.ts";
import { type System, startSystem } from "../../src/system/system.ts";

type DashboardSystem = { system: System; gateway: ServiceProcess; browser: Browser };

/** Describes user stories of the dashboard, in one running system. Each story has its own tenants. */
export function describeDashboard(
  title: string,
  stories: (given: () => DashboardSystem) => void,
): void {
  describeInChromium(title, () => {
    let system: System;
    let gateway: ServiceProcess;
    let browser: Browser;
    beforeAll(async () => {
      const { folder } = await ensureDashboard();
      system = await startSystem({
        managements: 2,
        schedulers: 1,
        dispatchers: 1,
        meterings: 1,
        edges: 1,
        settings: () => ({
          management: { TRUSTED_PROXIES: "127.0.0.1" },
          dashboard: { DASHBOARD_DIR: folder },
        }),
      });
      gateway = await system.startGateway();
      browser = await startChromium();
    }, 120_000);
    afterAll(async () => {
      await browser?.close();
      await system?.close();
    });

    stories(() => ({ system, gateway, browser }));
  });
}
