import { randomBytes } from "node:crypto";
import type { KeyLimits, LastUsed } from "@halyard/api-keys";
import { uploadTimeoutMs } from "@halyard/contracts";
import { type App, createApp } from "@halyard/http";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { createCosts } from "./access/costs.ts";
import { createAuthentication, type FindKey } from "./access/principal.ts";
import { bodyLimitBytes } from "./access/request-cost.ts";
import { createRoutes } from "./access/routes.ts";
import { registerAudienceRoutes, registerListRoutes } from "./audiences/audience-routes.ts";
import { registerAuditRoutes } from "./audit/audit-routes.ts";
import {
  registerDependents,
  registerFlagExplanation,
  registerFlagRoutes,
  registerFlagStateRoutes,
  registerOperatorCatalogue,
} from "./flags/flag-routes.ts";
import { registerHistoryRoutes } from "./history/history-routes.ts";
import { registerIdentityRoute } from "./keys/identity-routes.ts";
import { registerKeyRoutes } from "./keys/key-routes.ts";
import { registerSignIn, type SignInOptions } from "./keys/sign-in.ts";
import { registerUserRoutes } from "./keys/user-routes.ts";
import type { Writer } from "./outbox/write.ts";
import { registerChangeStream } from "./publishing/change-stream-route.ts";
import type { ChangeStreams } from "./publishing/change-streams.ts";
import { type ReadStatus, registerStatusRoutes } from "./status/read-status.ts";
import { registerEnvironmentRoutes } from "./tenancy/environment-routes.ts";
import { registerOrganizationRoutes } from "./tenancy/organization-routes.ts";
import { registerProjectRoutes } from "./tenancy/project-routes.ts";

/** Creates the HTTP API of management. */
export function createManagementApp(
  options: SignInOptions & {
    sql: Sql;
    writer: Writer;
    changeStreams: ChangeStreams;
    findKey: FindKey;
    readStatus: ReadStatus;
    operatorToken: string;
    keyLimits: KeyLimits;
    lastUsed: LastUsed;
    now: () => Date;
    newId: () => string;
    trustedProxies: readonly string[];
    checkAnswers: boolean;
    /** False in production, where management does not start with keys of the demo user. */
    allowDemoUser: boolean;
    metrics: Registry;
    logger: Logger;
  },
): App {
  const { sql, writer, allowDemoUser, now, newId } = options;
  const app = createApp({
    ...{ ...options, bodyLimitBytes, isOutage },
    streamTimeoutMs: uploadTimeoutMs,
  });
  const limits = options.keyLimits;
  const authenticationFor = createAuthentication({
    ...options,
    limits,
    nowMs: () => now().getTime(),
  });
  const costs = createCosts({ limits, now });
  const routes = createRoutes({ app, authenticationFor, writer, costs, randomBytes, now, newId });
  registerFlagRoutes(routes, { sql, now });
  registerFlagStateRoutes(routes, { sql });
  registerDependents(routes, { sql });
  registerFlagExplanation(routes, { sql, costs, newId });
  registerOperatorCatalogue(routes);
  registerAudienceRoutes(routes, { sql });
  registerListRoutes(routes, { sql, newId });
  registerHistoryRoutes(routes, { sql, writer, now, newId });
  registerAuditRoutes(routes, { sql });
  registerChangeStream(routes, { sql, streams: options.changeStreams });
  registerOrganizationRoutes(routes, { sql });
  registerUserRoutes(routes, { sql, allowDemoUser });
  registerProjectRoutes(routes, { sql });
  registerEnvironmentRoutes(routes, { sql });
  registerIdentityRoute(routes, { sql });
  registerKeyRoutes(routes, { sql, randomBytes, now, allowDemoUser });
  registerStatusRoutes(routes, options.readStatus);
  registerSignIn(app, options);
  return app;
}
