import { randomBytes } from "node:crypto";
import type { KeyLimits, LastUsed } from "@halyard/api-keys";
import type { PlanLimits } from "@halyard/contracts";
import { isOutage, type Sql } from "@halyard/postgres";
import { type App, createApp } from "@halyard/service";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { type AuthenticateKey, createAuthentication, type FindKey } from "./access/principal.ts";
import { registerChangeRoutes } from "./audit/audit-routes.ts";
import { registerEnvironmentRoutes } from "./environments/environment-routes.ts";
import { createFlagChanges } from "./flags/flag-changes.ts";
import {
  registerFlagRoutes,
  registerFlagStateRoutes,
  registerOperatorCatalogue,
} from "./flags/flag-routes.ts";
import { registerHistoryRoutes, registerRollbackRoute } from "./history/history-routes.ts";
import { createAnswerOnce } from "./idempotency/answer-once.ts";
import { registerKeyRoutes } from "./keys/key-routes.ts";
import { registerOrganizationRoutes } from "./organizations/organization-routes.ts";
import type { Writer } from "./outbox/write.ts";
import { registerProjectRoutes } from "./projects/project-routes.ts";
import { registerUserRoutes } from "./users/user-routes.ts";

/** The largest body that is read; the largest set of rules that anybody writes is far below. */
const bodyLimitBytes = 1024 * 1024;

/** The HTTP side of management: all its routes over what they need. */
export function createManagementApp(options: {
  sql: Sql;
  writer: Writer;
  findKey: FindKey;
  operatorToken: string;
  keyLimits: KeyLimits;
  lastUsed: LastUsed;
  plans: Readonly<Record<string, PlanLimits>>;
  now: () => Date;
  newId: () => string;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  /** In production it is false, because management does not start there with keys of the demo user. */
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
  const serverKey = authenticationFor("server_key") as AuthenticateKey;
  const answerOnce = createAnswerOnce(randomBytes);
  const changes = createFlagChanges({ now, newId });
  registerFlagRoutes(app, { sql, writer, changes, answerOnce, authenticate: serverKey });
  registerFlagStateRoutes(app, { sql, writer, changes, authenticate: serverKey });
  registerRollbackRoute(app, { writer, changes, answerOnce, authenticate: serverKey });
  registerOperatorCatalogue(app, { authenticate: authenticationFor("any_key") as AuthenticateKey });

  const shared = { sql, writer, answerOnce, now, newId };
  const operator = { ...shared, authenticate: authenticationFor("operator") };
  registerOrganizationRoutes(app, { ...operator, plans });
  registerUserRoutes(app, { ...operator, allowDemoUser });
  registerProjectRoutes(app, { ...operator, plans });

  const projectScoped = { ...shared, authenticate: authenticationFor("operator_or_server_key") };
  registerEnvironmentRoutes(app, {
    ...projectScoped,
    authenticateOperator: operator.authenticate,
  });
  registerKeyRoutes(app, { ...projectScoped, randomBytes, allowDemoUser });
  registerHistoryRoutes(app, projectScoped);
  registerChangeRoutes(app, projectScoped);
  return app;
}
