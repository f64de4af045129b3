import { randomBytes } from "node:crypto";
import type { KeyLimits, LastUsed } from "@halyard/api-keys";
import { uploadTimeoutMs } from "@halyard/contracts";
import { type App, createApp } from "@halyard/http";
import type { Callers, People } from "@halyard/people";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { createCosts } from "./access/costs.ts";
import { createAuthentication, type FindKey } from "./access/principal.ts";
import { bodyLimitBytes } from "./access/request-cost.ts";
import { createRoutes, type Routes } from "./access/routes.ts";
import { registerAudienceRoutes, registerListRoutes } from "./audiences/audience-routes.ts";
import { registerAuditRoutes } from "./audit/audit-routes.ts";
import { createPropose, registerChangeRequestRoutes } from "./change-requests/request-routes.ts";
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
import type { Writer } from "./outbox/write.ts";
import { registerPeopleLog } from "./people/audit-log-routes.ts";
import { registerGrantRoutes } from "./people/grant-routes.ts";
import type { GroupSettings } from "./people/group-grants.ts";
import { registerPersonRoutes } from "./people/person-routes.ts";
import { registerUserRoutes } from "./people/user-routes.ts";
import { registerChangeStream } from "./publishing/change-stream-route.ts";
import type { ChangeStreams } from "./publishing/change-streams.ts";
import { registerBrowserRoutes } from "./sign-in/browser-routes.ts";
import { registerInvitationRoutes } from "./sign-in/invitation-routes.ts";
import { registerSignInMethods, signInMethods } from "./sign-in/methods.ts";
import { registerOwnRoutes } from "./sign-in/own-routes.ts";
import type { SignInSettings } from "./sign-in/settings.ts";
import { type ReadStatus, registerStatusRoutes } from "./status/read-status.ts";
import { registerEnvironmentRoutes } from "./tenancy/environment-routes.ts";
import { registerOrganizationRoutes } from "./tenancy/organization-routes.ts";
import { registerProjectRoutes } from "./tenancy/project-routes.ts";

type ManagementOptions = GroupSettings & {
  sql: Sql;
  writer: Writer;
  changeStreams: ChangeStreams;
  findKey: FindKey;
  callers: Callers;
  readStatus: ReadStatus;
  operatorToken: string;
  keyLimits: KeyLimits;
  lastUsed: LastUsed;
  now: () => Date;
  newId: () => string;
  trustedProxies: readonly string[];
  checkAnswers: boolean;
  /** Undefined without `PUBLIC_URL`. */
  signIn?: { settings: SignInSettings; people: People } | undefined;
  /** True if a server key opens the dashboard. */
  signInByKey: boolean;
  /** False in production, where management does not start with keys of the demo user. */
  allowDemoUser: boolean;
  metrics: Registry;
  logger: Logger;
};

/** Creates the HTTP API of management. */
export function createManagementApp(options: ManagementOptions): App {
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
  const propose = createPropose({ writer, now, newId });
  const routes = createRoutes({
    ...{ app, authenticationFor, writer, costs, randomBytes, now, newId, propose },
  });
  registerFlagRoutes(routes, { sql, now });
  registerFlagStateRoutes(routes, { sql });
  registerDependents(routes, { sql });
  registerFlagExplanation(routes, { sql, costs, newId });
  registerOperatorCatalogue(routes);
  registerAudienceRoutes(routes, { sql });
  registerListRoutes(routes, { sql, newId });
  registerHistoryRoutes(routes, { sql, writer, now, newId });
  registerChangeRequestRoutes(routes, { sql });
  registerAuditRoutes(routes, { sql });
  registerChangeStream(routes, { ...options, streams: options.changeStreams });
  registerOrganizationRoutes(routes, { sql });
  registerUserRoutes(routes, { sql, allowDemoUser });
  registerGrantRoutes(routes, options);
  registerPersonRoutes(routes);
  registerPeopleLog(routes, { sql });
  registerProjectRoutes(routes, { sql });
  registerEnvironmentRoutes(routes, { sql });
  registerIdentityRoute(routes, { sql });
  registerKeyRoutes(routes, { sql, randomBytes, now, allowDemoUser });
  registerStatusRoutes(routes, options.readStatus);
  registerSigningIn(app, routes, options);
  return app;
}

function registerSigningIn(app: App, routes: Routes, options: ManagementOptions): void {
  const { signIn, signInByKey, callers, now } = options;
  const { findSession } = callers;
  const methods = signInMethods(signIn?.settings, signInByKey);
  registerSignInMethods(app, methods, { callers, limits: options.keyLimits, now });
  if (signIn === undefined) return;
  const { publicUrl, byOperator } = signIn.settings;
  registerInvitationRoutes(routes, { ...options, publicUrl, byOperator });
  registerOwnRoutes(routes, { ...options, ...signIn });
  registerBrowserRoutes(app, { ...options, ...signIn, findSession, methods });
}
