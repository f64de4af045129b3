import { type App, createApp } from "@halyard/http";
import type { Logger, Metrics } from "@halyard/service";
import { type DashboardOptions, registerDashboard } from "./built-dashboard.ts";
import { type DocsOptions, registerDocs } from "./docs-page.ts";

/** Requests have no bodies. */
const bodyLimitBytes = 1024;

/** Creates the application of the pages. It serves all paths that belong to no service. */
export async function createPages(
  options: DocsOptions &
    DashboardOptions & { logger: Logger; metrics: Metrics; trustedProxies: readonly string[] },
): Promise<App> {
  const { logger, metrics, trustedProxies } = options;
  const app = createApp({ logger, metrics, trustedProxies, bodyLimitBytes, requestLog: false });
  await registerDocs(app, options);
  await registerDashboard(app, options);
  return app;
}
