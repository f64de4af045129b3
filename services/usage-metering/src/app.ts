import type { AuthenticateServerKey } from "@halyard/api-keys";
import { isOutage, type Sql } from "@halyard/postgres";
import { type App, createApp } from "@halyard/service";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { Directory } from "./directory/directory.ts";
import type { OpenStreams } from "./open-streams/open-streams.ts";
import { registerReportRoutes } from "./reports/report-routes.ts";

/** No route takes a body. */
const bodyLimitBytes = 16 * 1024;

/** The HTTP side of usage metering: all its routes over what they need. */
export function createUsageApp(options: {
  sql: Sql;
  directory: Directory;
  openStreams: OpenStreams;
  authenticate: AuthenticateServerKey;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  metrics: Registry;
  logger: Logger;
}): App {
  const app = createApp({ ...options, bodyLimitBytes, isOutage });
  registerReportRoutes(app, options);
  return app;
}
