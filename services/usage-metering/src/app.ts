import type { AuthenticateServerKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import { isOutage, type Sql } from "@halyard/postgres";
import {
  type App,
  answer,
  createApp,
  createProblem,
  registerRoute,
  UnavailableError,
} from "@halyard/service";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { Directory } from "./directory/directory.ts";
import type { OpenStreams } from "./open-streams/open-streams.ts";
import { reportFlagUsage } from "./reports/flag-usage.ts";
import { readMonth } from "./reports/report-store.ts";

/** No route takes a body. */
const bodyLimitBytes = 16 * 1024;

/** Creates the HTTP server of usage metering. All routes need a server key. */
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
  const { sql, directory, openStreams, authenticate } = options;
  const app = createApp({ ...options, bodyLimitBytes, isOutage });

  registerRoute(app, contract.getUsage, {
    authenticate,
    handle: async (_input, { organizationId }) => {
      const organization = directory.organization(organizationId);
      // The key's entry can arrive shortly before that of the organization.
      if (organization === undefined)
        throw new UnavailableError("Usage metering has not loaded the organization yet.");
      const { plan, limits, project_count } = organization;
      const { start, end, used } = await readMonth(sql, organizationId);
      return answer.ok({
        plan,
        period: { start: start.toISOString(), end: end.toISOString() },
        requests: { used, limit: limits.requests_per_month },
        sse_connections: {
          used: openStreams.heldBy(organizationId),
          limit: limits.sse_connections,
        },
        projects: { used: project_count, limit: limits.projects },
      } satisfies contract.Usage);
    },
  });

  registerRoute(app, contract.getFlagUsage, {
    authenticate,
    handle: async ({ params, query }, key) => {
      const flagId = params.id.toLowerCase();
      const environments = directory
        .environmentsOf({ projectId: key.projectId, flagId })
        .filter(({ environmentId }) => !key.environmentOnly || environmentId === key.environmentId);
      if (environments.length === 0)
        return createProblem("NOT_FOUND_001", "There is no such flag in this project.");
      const hours = query.hours ?? contract.defaultUsageHours;
      return answer.ok(await reportFlagUsage(sql, { flagId, environments, hours }));
    },
  });
  return app;
}
