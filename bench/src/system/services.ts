import { rmSync } from "node:fs";
import { join } from "node:path";
import type { NatsUser } from "@halyard/contracts";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { projectRoot } from "../project-root.ts";
import { until } from "../until.ts";
import { type Nats, natsPasswordOf, type Postgres } from "./backends.ts";
import { signingSettings } from "./signing.ts";
import { loadStripped, stripSources } from "./stripped-sources.ts";

/** A service in its own process, configured as in production. */
export type Service = { url: string; metricsUrl: string; child: Child };

export type StartOptions = { core: string | undefined };

export const operatorToken = "the operator's token of the benchmarks";

/** A test key. All dispatchers must have the same one. */
const webhookSecretKeys = `bench:${Buffer.alloc(32, "k").toString("base64")}`;

const production = {
  // As in deploy/docker/Dockerfile.
  NODE_OPTIONS: "--max-semi-space-size=8",
  MALLOC_ARENA_MAX: "1",
  HALYARD_MODE: "production",
  HOST: "127.0.0.1",
  PORT: "0",
  METRICS_PORT: "0",
  ...signingSettings.readers,
};

/** Raises the rate limits, because a few clients share one key. */
const keyLimits = { KEY_REQUESTS_PER_SECOND: "1000000", KEY_REQUESTS_BURST: "1000000" };

/** Plan of the benchmarks' organizations. */
export const unlimitedPlan = "bench";
const plans = {
  [unlimitedPlan]: { requests_per_month: null, sse_connections: null, projects: null },
};

export type EdgeOptions = StartOptions & { natsUrl: string; cacheFile?: string };

/** Resolves when the edge listens; see `awaitReady`. */
export async function startEdge(bench: Bench, options: EdgeOptions): Promise<Service> {
  return start(bench, "services/sdk-edge/src/main.ts", options, edgeVariables(options));
}

/** Starts an edge without metering and limits. */
export async function startUncountedEdge(bench: Bench, options: EdgeOptions): Promise<Service> {
  const program = "bench/src/usage/uncounted-edge-process.ts";
  return start(bench, program, options, edgeVariables(options));
}

function edgeVariables({ natsUrl, cacheFile }: EdgeOptions): Record<string, string> {
  return {
    ...natsVariables("sdk-edge", natsUrl),
    ...(cacheFile === undefined ? {} : { SNAPSHOT_CACHE_FILE: cacheFile }),
    STREAM_TOKEN_SECRET: "the secret of streams of the benchmarks",
  };
}

function natsVariables(user: NatsUser, url: string): Record<string, string> {
  return { NATS_URL: url, NATS_USER: user, NATS_PASSWORD: natsPasswordOf(user) };
}

export type BackendOptions = StartOptions & { postgres: Postgres; nats: Nats };

export async function startManagement(bench: Bench, options: BackendOptions): Promise<Service> {
  const management = await launchManagement(bench, options);
  await until("management publishes", () => isPublishing(management));
  return management;
}

/** Returns whether this management leads the relay and has written the snapshot. */
export async function isPublishing(management: Service): Promise<boolean> {
  const response = await fetch(`${management.metricsUrl}/readyz`);
  const body = (await response.json()) as { relay?: string };
  return response.ok && body.relay === "leading";
}

/** Starts another management process. */
export async function startAnotherManagement(
  bench: Bench,
  options: BackendOptions,
): Promise<Service> {
  const management = await launchManagement(bench, options);
  await awaitReady(management);
  return management;
}

/** Resolves when management listens; see `isPublishing`. */
export function launchManagement(bench: Bench, options: BackendOptions): Promise<Service> {
  return start(bench, "services/management/src/main.ts", options, {
    POSTGRES_URL: options.postgres.managementUrl,
    ...natsVariables("management", options.nats.url),
    OPERATOR_TOKEN: operatorToken,
    ...signingSettings.management,
    PLANS: JSON.stringify(plans),
    ...keyLimits,
  });
}

/** Resolves when the scheduler listens; see `awaitReady`. */
export async function startScheduler(bench: Bench, options: BackendOptions): Promise<Service> {
  return start(bench, "services/scheduler/src/main.ts", options, {
    POSTGRES_URL: options.postgres.schedulerUrl,
    ...natsVariables("scheduler", options.nats.url),
    ...keyLimits,
  });
}

/** Resolves when usage-metering listens; see `awaitReady`. */
export async function startUsageMetering(bench: Bench, options: BackendOptions): Promise<Service> {
  return start(bench, "services/usage-metering/src/main.ts", options, {
    POSTGRES_URL: options.postgres.usageUrl,
    ...natsVariables("usage-metering", options.nats.url),
  });
}

/**
 * Resolves when the dispatcher listens; see `awaitReady`. It runs in development mode, because the receivers
 * use plain HTTP on this machine.
 */
export async function startDispatcher(bench: Bench, options: BackendOptions): Promise<Service> {
  return start(bench, "services/webhook-dispatcher/src/main.ts", options, {
    HALYARD_MODE: "development",
    POSTGRES_URL: options.postgres.webhooksUrl,
    ...natsVariables("webhook-dispatcher", options.nats.url),
    WEBHOOK_SECRET_KEYS: webhookSecretKeys,
    WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
    ...keyLimits,
  });
}

/** Starts a gateway with the dashboard in front of management. The other services do not exist. */
export async function startGateway(
  bench: Bench,
  { managementUrl, dashboardDir }: { managementUrl: string; dashboardDir: string },
): Promise<Service> {
  // No process listens on port 9.
  const unused = "http://127.0.0.1:9";
  return start(
    bench,
    "deploy/gateway/src/main.ts",
    { core: undefined },
    {
      DASHBOARD_DIR: dashboardDir,
      UPSTREAM_MANAGEMENT_URL: managementUrl,
      UPSTREAM_SCHEDULER_URL: unused,
      UPSTREAM_SDK_EDGE_URL: unused,
      UPSTREAM_USAGE_METERING_URL: unused,
      UPSTREAM_WEBHOOK_DISPATCHER_URL: unused,
    },
  );
}

export async function awaitReady(service: Service): Promise<void> {
  await until("the service is ready", async () => {
    const response = await fetch(`${service.metricsUrl}/readyz`);
    await response.arrayBuffer();
    return response.ok;
  });
}

async function start(
  bench: Bench,
  program: string,
  { core }: StartOptions,
  environment: Record<string, string>,
): Promise<Service> {
  const sources = sourcesOf(bench, program);
  const child = await startChild(bench, {
    program: join(sources.root, program),
    core,
    nodeOptions: sources.nodeOptions,
    environment: { ...production, ...environment },
  });
  const { url, metrics_url } = child.greeting as { url: string; metrics_url: string };
  return { url, metricsUrl: metrics_url, child };
}

/** The stripped sources of each benchmark. */
const strippedRoots = new WeakMap<Bench, string>();

/**
 * Returns the sources of a program. Services start from stripped sources, as in the images. A quick run saves the time
 * for the copy, and the copy does not contain the programs of the benchmarks.
 */
function sourcesOf(bench: Bench, program: string) {
  if (bench.quick || !program.startsWith("services/"))
    return { root: projectRoot, nodeOptions: [] };
  let root = strippedRoots.get(bench);
  if (root === undefined) {
    const stripped = stripSources();
    bench.afterwards(async () => rmSync(stripped, { recursive: true, force: true }));
    strippedRoots.set(bench, stripped);
    root = stripped;
  }
  return { root, nodeOptions: loadStripped };
}
