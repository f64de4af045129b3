import { checkKeyEnvironment } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import {
  type App,
  answer,
  createApp,
  createProblem,
  registerRoute,
  UnavailableError,
} from "@halyard/http";
import type { AuthenticateMember } from "@halyard/people";
import { isOutage, type Sql } from "@halyard/postgres";
import type { OpenStreams } from "@halyard/reports";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import type { Directory } from "./directory/directory.ts";
import { reportFlagTraffic } from "./reports/flag-traffic.ts";
import { reportFlagUsage } from "./reports/flag-usage.ts";
import {
  readDays,
  readFirstDay,
  readMonth,
  readReaders,
  resolvePeriod,
} from "./reports/report-store.ts";

/** No route takes a body. */
const bodyLimitBytes = 16 * 1024;

type Sources = {
  sql: Sql;
  directory: Directory;
  openStreams: OpenStreams;
  authenticate: AuthenticateMember;
};

/** Creates the HTTP server of usage metering. All routes need a server key. */
export function createUsageApp(
  options: Sources & {
    trustedProxies: readonly string[];
    checkAnswers: boolean;
    metrics: Registry;
    logger: Logger;
  },
): App {
  const app = createApp({ ...options, bodyLimitBytes, isOutage });
  registerUsage(app, options);
  registerFlagUsage(app, options);
  registerReaders(app, options);
  return app;
}

function registerUsage(app: App, { sql, directory, openStreams, authenticate }: Sources): void {
  registerRoute(app, contract.getUsage, {
    authenticate: authenticate(contract.getUsage),
    handle: async (_input, { organizationId }) => {
      const organization = directory.organization(organizationId);
      // The key's entry can arrive shortly before that of the organization.
      const limits = directory.limitsOf(organizationId);
      if (organization === undefined || limits === undefined)
        throw new UnavailableError("Usage metering has not loaded the organization yet.");
      const { plan, project_count } = organization;
      const { start, end, used } = await readMonth(sql, organizationId);
      return answer.ok({
        plan,
        period: { start: start.toISOString(), end: end.toISOString() },
        requests: { used, limit: limits.requests_per_month },
        sse_connections: { used: openStreams.of(organizationId), limit: limits.sse_connections },
        projects: { used: project_count, limit: limits.projects },
        configuration_bytes: {
          used: directory.configurationBytesOf(organizationId),
          limit: limits.configuration_bytes,
        },
      } satisfies contract.Usage);
    },
  });

  registerRoute(app, contract.listUsageDays, {
    authenticate: authenticate(contract.listUsageDays),
    handle: async ({ query: { from, to } }, { organizationId }) => {
      const period = await resolvePeriod(sql, { from, to });
      if (period.days < 1 || period.days > contract.maxUsageDays)
        return createProblem(
          "VALIDATION_001",
          `query parameter /from must be at most /to, and at most ${contract.maxUsageDays - 1} days before it; /to is today by default`,
        );
      const [days, knownSince] = await Promise.all([
        readDays(sql, { organizationId, ...period }),
        readFirstDay(sql, organizationId),
      ]);
      return answer.ok({ days, known_since: knownSince } satisfies contract.UsageDays);
    },
  });
}

/** Registers the evaluations of the project's flags. */
function registerFlagUsage(app: App, { sql, directory, authenticate }: Sources): void {
  registerRoute(app, contract.getFlagUsage, {
    authenticate: authenticate(contract.getFlagUsage),
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

  registerRoute(app, contract.listFlagTraffic, {
    authenticate: authenticate(contract.listFlagTraffic),
    handle: async ({ query }, key) => {
      const environmentId =
        query.environment_id?.toLowerCase() ??
        (key.environmentOnly ? key.environmentId : undefined);
      const problem = environmentId && checkKeyEnvironment(key, environmentId);
      if (problem) return problem;
      const environmentIds = directory
        .environmentIdsOf(key.projectId)
        .filter((each) => environmentId === undefined || each === environmentId);
      if (environmentIds.length === 0) return noSuchEnvironment;
      const { hours = contract.defaultUsageHours, order = "most" } = query;
      const limit = query.limit ?? contract.defaultTrafficLimit;
      const request = { environmentIds, hours, order, limit };
      return answer.ok(await reportFlagTraffic(sql, directory, request));
    },
  });
}

/** Registers the SDKs that evaluate the flags of an environment. */
function registerReaders(app: App, { sql, directory, authenticate }: Sources): void {
  registerRoute(app, contract.listReaders, {
    authenticate: authenticate(contract.listReaders),
    handle: async ({ params }, key) => {
      const environmentId = params.environmentId.toLowerCase();
      const isOfProject =
        params.projectId.toLowerCase() === key.projectId &&
        directory.environmentIdsOf(key.projectId).includes(environmentId);
      if (!isOfProject) return noSuchEnvironment;
      const problem = checkKeyEnvironment(key, environmentId);
      if (problem !== undefined) return problem;
      return answer.ok({
        readers: await readReaders(sql, environmentId),
      } satisfies contract.Readers);
    },
  });
}

const noSuchEnvironment = createProblem(
  "NOT_FOUND_001",
  "There is no such environment in this project.",
);
