import { randomBytes } from "node:crypto";
import type { KeyLimits, LastUsed } from "@halyard/api-keys";
import { isOutage, type Sql } from "@halyard/postgres";
import { type App, createApp } from "@halyard/service";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { createAuthentication, type FindKey } from "./access/principal.ts";
import { createRoutes } from "./access/routes.ts";
import { registerAuditRoutes } from "./audit/audit-routes.ts";
import { registerChangeStream } from "./change-streams/change-stream-route.ts";
import type { ChangeStreams } from "./change-streams/change-streams.ts";
import { registerEnvironmentRoutes } from "./environments/environment-routes.ts";
import {
  registerFlagExplanation,
  registerFlagRoutes,
  registerFlagStateRoutes,
  registerOperatorCatalogue,
} from "./flags/flag-routes.ts";
import { registerHistoryRoutes } from "./history/history-routes.ts";
import { registerIdentityRoute } from "./identity/identity-routes.ts";
import { registerKeyRoutes } from "./keys/key-routes.ts";
import type { Plans } from "./organizations/organization.ts";
import { registerOrganizationRoutes } from "./organizations/organization-routes.ts";
import type { Writer } from "./outbox/write.ts";
import { registerProjectRoutes } from "./projects/project-routes.ts";
import type { ReadStatus } from "./status/read-status.ts";
import { registerStatusRoutes } from "./status/status-routes.ts";
import { registerUserRoutes } from "./users/user-routes.ts";

/** Maximum size of a request body. The largest valid set of targeting rules is about half as large. */
const bodyLimitBytes = 1024 * 1024;

/** Creates the HTTP API of management. */
export function createManagementApp(options: {
  sql: Sql;
  writer: Writer;
  changeStreams: ChangeStreams;
  findKey: FindKey;
  readStatus: ReadStatus;
  operatorToken: string;
  keyLimits: KeyLimits;
  lastUsed: LastUsed;
  plans: Plans;
  now: () => Date;
  newId: () => string;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  /** False in production, where management does not start with keys of the demo user. */
  allowDemoUser: boolean;
  metrics: Registry;
  logger: Logger;
}): App {
  const { sql, writer, plans, allowDemoUser, now, newId } = options;
  const app = createApp({ ...options, bodyLimitBytes, isOutage });
  const authenticationFor = createAuthentication({
    ...options,
    limits: options.keyLimits,
    nowMs: () => now().getTime(),
  });
  const routes = createRoutes({ app, authenticationFor, writer, randomBytes, now, newId });
  registerFlagRoutes(routes, { sql, now });
  registerFlagStateRoutes(routes, { sql });
  registerFlagExplanation(routes, { sql });
  registerOperatorCatalogue(routes);
  registerHistoryRoutes(routes, { sql, writer, now, newId });
  registerAuditRoutes(routes, { sql });
  registerChangeStream(routes, { sql, streams: options.changeStreams });
  registerOrganizationRoutes(routes, { sql, plans });
  registerUserRoutes(routes, { sql, allowDemoUser });
  registerProjectRoutes(routes, { sql, plans });
  registerEnvironmentRoutes(routes, { sql });
  registerIdentityRoute(routes, { sql });
  registerKeyRoutes(routes, { sql, randomBytes, allowDemoUser });
  registerStatusRoutes(routes, options.readStatus);
  return app;
}
