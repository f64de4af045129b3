import { join } from "node:path";
import type { Bench } from "../benchmark.ts";
import { type Child, startChild } from "../processes/child-process.ts";
import { projectRoot } from "../project-root.ts";
import { until } from "../until.ts";
import type { Nats, Postgres } from "./backends.ts";

/** The services, as processes of their own and set up as in production. */
export type Service = { url: string; metricsUrl: string; child: Child };

export type StartOptions = {
  core: string | undefined;
  nodeOptions?: readonly string[];
};

export const operatorToken = "the operator's token of the benchmarks";

const production = {
  HALYARD_MODE: "production",
  HOST: "127.0.0.1",
  PORT: "0",
  METRICS_PORT: "0",
};

/** Answers when the edge listens; see `awaitReady`. */
export async function startEdge(
  bench: Bench,
  options: StartOptions & { natsUrl: string; cacheFile?: string },
): Promise<Service> {
  return start(bench, "services/sdk-edge/src/main.ts", options, {
    NATS_URL: options.natsUrl,
    ...(options.cacheFile === undefined ? {} : { SNAPSHOT_CACHE_FILE: options.cacheFile }),
  });
}

export async function startManagement(
  bench: Bench,
  options: StartOptions & { postgres: Postgres; nats: Nats },
): Promise<Service> {
  const management = await start(bench, "services/management/src/main.ts", options, {
    POSTGRES_URL: options.postgres.managementUrl,
    NATS_URL: options.nats.url,
    OPERATOR_TOKEN: operatorToken,
  });
  await until("management publishes", async () => {
    const response = await fetch(`${management.metricsUrl}/readyz`);
    const body = (await response.json()) as { relay?: string };
    return response.ok && body.relay === "leading";
  });
  return management;
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
  { core, nodeOptions = [] }: StartOptions,
  environment: Record<string, string>,
): Promise<Service> {
  const child = await startChild(bench, {
    program: join(projectRoot, program),
    core,
    nodeOptions,
    environment: { ...production, ...environment },
  });
  const { url, metrics_url } = child.greeting as { url: string; metrics_url: string };
  return { url, metricsUrl: metrics_url, child };
}
