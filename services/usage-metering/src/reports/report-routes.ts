import type { AuthenticateServerKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { type App, answer, refuse, registerRoute, UnavailableError } from "@halyard/service";
import type { Directory } from "../directory/directory.ts";
import type { OpenStreams } from "../open-streams/open-streams.ts";
import { reportFlagUsage } from "./flag-usage.ts";
import { readMonth } from "./report-store.ts";

/** The routes of usage. Every one needs a server key. */
export function registerReportRoutes(
  app: App,
  options: {
    sql: Sql;
    directory: Directory;
    openStreams: OpenStreams;
    authenticate: AuthenticateServerKey;
  },
): void {
  const { sql, directory, openStreams, authenticate } = options;

  registerRoute(app, contract.getUsage, {
    authenticate,
    handle: async (_input, { organizationId }) => {
      const organization = directory.organization(organizationId);
      // The key's entry may have come before that of the organization, whose own cannot be far.
      if (organization === undefined)
        throw new UnavailableError("Usage metering has not heard of the organization yet.");
      const { plan, limits, projectCount } = organization;
      const { start, end, used } = await readMonth(sql, organizationId);
      return answer.ok({
        plan,
        period: { start: start.toISOString(), end: end.toISOString() },
        requests: { used, limit: limits.requests_per_month },
        sse_connections: {
          used: openStreams.heldBy(organizationId),
          limit: limits.sse_connections,
        },
        projects: { used: projectCount, limit: limits.projects },
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
        return refuse("NOT_FOUND_001", "There is no such flag in this project.");
      const hours = query.hours ?? contract.defaultUsageHours;
      return answer.ok(await reportFlagUsage(sql, { flagId, environments, hours }));
    },
  });
}
