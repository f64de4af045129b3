import { rmSync } from "node:fs";
import { join } from "node:path";
import type { NatsUser } from "@halyard/contracts";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import type { Cores } from "../processes/cores.ts";
import { cpuMsOfTree } from "../processes/process-usage.ts";
import { projectRoot } from "../project-root.ts";
import { until } from "../time.ts";
import {
  type Backends,
  type DatabaseUser,
  type Nats,
  natsPasswordOf,
  type Postgres,
} from "./backends.ts";
import { signingSettings } from "./signing.ts";
import { loadStripped, stripSources } from "./stripped-sources.ts";

/** A service in its own process, configured as in production. */
export type Service = Pick<Child, "pid" | "stop"> & { url: string; metricsUrl: string };
export const operatorToken = "the operator's token of the benchmarks";

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

/** Address of the dashboard. Nothing listens there; it names the cookie of sessions. */
export const publicUrl = "http://localhost:3000";

/** Raises the rate limits, because a few clients share one key. */
const keyLimits = { KEY_REQUESTS_PER_SECOND: "1000000", KEY_REQUESTS_BURST: "1000000" };
/** Plan of the benchmarks' organizations. */
export const unlimitedPlan = "bench";
const unlimited = { requests_per_month: null, sse_connections: null, projects: null };

const settings: Record<DatabaseUser, Record<string, string>> = {
  management: {
    OPERATOR_TOKEN: operatorToken,
    // Sign-ins are limited by address.
    TRUSTED_PROXIES: "127.0.0.1",
    ...signingSettings.management,
    ...signingSettings.messages.management,
    PLANS: JSON.stringify({ [unlimitedPlan]: unlimited }),
    ...keyLimits,
  },
  scheduler: { ...keyLimits, ...signingSettings.messages.scheduler },
  "usage-metering": keyLimits,
  // In development mode, because the receivers use plain HTTP on this machine.
  "webhook-dispatcher": {
    HALYARD_MODE: "development",
    // A test key. All dispatchers must have the same one.
    WEBHOOK_SECRET_KEYS: `bench:${Buffer.alloc(32, "k").toString("base64")}`,
    WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
    ...keyLimits,
    ...signingSettings.messages["webhook-dispatcher"],
  },
};

/** Resolves when the service listens; see `awaitReady`. */
export function launchService(
  bench: Bench,
  name: DatabaseUser,
  { postgres, nats }: Backends,
): Promise<Service> {
  const core = name === "usage-metering" ? "server" : "load";
  const database = { POSTGRES_URL: postgres.urls[name], PUBLIC_URL: publicUrl };
  const variables = { ...database, ...natsVariables(name, nats) };
  return launch(bench, `services/${name}/src/main.ts`, core, { ...variables, ...settings[name] });
}

export const startService = (...given: Parameters<typeof launchService>): Promise<Service> =>
  ready(launchService(...given));

export async function startManagement(bench: Bench, backends: Backends): Promise<Service> {
  const management = await launchService(bench, "management", backends);
  await until("management publishes", () => isPublishing(management));
  return management;
}

/** Returns whether this management leads the relay and has written the snapshot. */
export async function isPublishing({ metricsUrl }: Service): Promise<boolean> {
  const response = await fetch(`${metricsUrl}/readyz`);
  const body = (await response.json()) as { relay?: string };
  return response.ok && body.relay === "leading";
}

type EdgeOptions = {
  nats: Pick<Nats, "url">;
  cacheFile?: string;
  core?: keyof Cores;
  /** Further options of Node.js. */
  nodeOptions?: string;
  /** An edge without metering and limits, instead of the service. */
  program?: "bench/src/usage/uncounted-edge-process.ts";
};

/** Resolves when the edge listens; see `awaitReady`. */
export function launchEdge(bench: Bench, options: EdgeOptions): Promise<Service> {
  const { nats, cacheFile, core = "server" } = options;
  const { program = "services/sdk-edge/src/main.ts" } = options;
  const cache = cacheFile === undefined ? {} : { SNAPSHOT_CACHE_FILE: cacheFile };
  const secret = { STREAM_TOKEN_SECRET: "the secret of streams of the benchmarks" };
  const { nodeOptions = "" } = options;
  const node = { NODE_OPTIONS: `${production.NODE_OPTIONS} ${nodeOptions}` };
  const login = natsVariables("sdk-edge", nats);
  return launch(bench, program, core, { ...login, ...cache, ...secret, ...node });
}

export const startEdge = (bench: Bench, options: EdgeOptions): Promise<Service> =>
  ready(launchEdge(bench, options));

/** Starts the built-in proxy in front of management and the dashboard. The other services do not exist. */
export async function startGateway(
  bench: Bench,
  { managementUrl, dashboardDir }: { managementUrl: string; dashboardDir: string },
): Promise<Service> {
  // No process listens on port 9.
  const others = ["SCHEDULER", "SDK_EDGE", "USAGE_METERING", "WEBHOOK_DISPATCHER"].map(
    (name) => [`UPSTREAM_${name}_URL`, "http://127.0.0.1:9"] as const,
  );
  const pages = { DASHBOARD_DIR: dashboardDir };
  const dashboard = await launch(bench, "deploy/dashboard/src/main.ts", "load", pages);
  const environment = {
    ...{ UPSTREAM_MANAGEMENT_URL: managementUrl, UPSTREAM_DASHBOARD_URL: dashboard.url },
    ...Object.fromEntries(others),
  };
  return launch(bench, "deploy/gateway/src/main.ts", "load", environment);
}

function natsVariables(user: NatsUser, { url }: Pick<Nats, "url">) {
  return { NATS_URL: url, NATS_USER: user, NATS_PASSWORD: natsPasswordOf(user) };
}

export async function isReady({ metricsUrl }: Service): Promise<boolean> {
  const response = await fetch(`${metricsUrl}/readyz`);
  await response.arrayBuffer();
  return response.ok;
}

export const awaitReady = (service: Service, pauseMs?: number): Promise<void> =>
  until("the service is ready", () => isReady(service), pauseMs === undefined ? {} : { pauseMs });

async function ready(started: Promise<Service>): Promise<Service> {
  const service = await started;
  await awaitReady(service);
  return service;
}

async function launch(
  bench: Bench,
  program: string,
  core: keyof Cores,
  environment: Record<string, string>,
): Promise<Service> {
  const { root, nodeOptions } = sourcesOf(bench, program);
  type Greeting = { url: string; metrics_url: string };
  const { pid, stop, greeting } = await startChild<unknown, Greeting>(bench, {
    ...{ program: join(root, program), core, nodeOptions },
    environment: { ...production, ...environment },
  });
  return { pid, stop, url: greeting.url, metricsUrl: greeting.metrics_url };
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
    bench.afterwards(() => rmSync(stripped, { recursive: true, force: true }));
    strippedRoots.set(bench, stripped);
    root = stripped;
  }
  return { root, nodeOptions: loadStripped };
}

const cpuSeconds = /^process_cpu_seconds_total(?:\{[^}]*\})? (\S+)/m;

/**
 * Returns the CPU time of a service in milliseconds, without the loading of modules. It uses the service's
 * metric, because /proc has a resolution of 10 ms.
 */
export async function serviceCpuMs({ metricsUrl }: Service): Promise<number> {
  const text = await (await fetch(`${metricsUrl}/metrics`)).text();
  const seconds = cpuSeconds.exec(text)?.[1];
  if (seconds === undefined) throw new Error(`No CPU time in the metrics at ${metricsUrl}.`);
  return Number(seconds) * 1e3;
}

/** Returns a function that returns the CPU time since then, of a service and of PostgreSQL. */
export async function watchCpu(service: Service, postgres: Postgres) {
  const [beforeMs, databaseBeforeMs] = [await serviceCpuMs(service), cpuMsOfTree(postgres.pid)];
  return async () => ({
    serviceMs: (await serviceCpuMs(service)) - beforeMs,
    databaseMs: cpuMsOfTree(postgres.pid) - databaseBeforeMs,
  });
}
