import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import {
  call,
  createTestDatabase,
  eventually,
  natsServerBinary,
  type RestartableNats,
  type RestartablePostgres,
  type ServiceProcess,
  startRestartableNats,
  startRestartablePostgres,
  startServiceProcess,
} from "@halyard/testing";
import postgres from "postgres";
import "./patience.ts";
import { type NatsGate, openNatsGate } from "./nats-gate.ts";
import { operatorToken } from "./tenancy.ts";

/**
 * A whole system of real processes: PostgreSQL, NATS, as many management processes and edges as a test
 * wants, and a gateway before them. Each management reaches NATS through a gate of its own.
 */
export type Management = ServiceProcess & { gate: NatsGate };

/** An edge keeps its address and its disk cache when it is started again, as a client would find it. */
export type Edge = {
  name: string;
  url: string;
  process: ServiceProcess;
  cacheFile: string;
  /** Waits until it holds a snapshot, unless told otherwise. */
  start(options?: { awaitReady?: boolean }): Promise<void>;
};

export type System = {
  nats: RestartableNats;
  /** Set where the system has a PostgreSQL server of its own. */
  postgres: RestartablePostgres | undefined;
  /** As a superuser, in management's schema. */
  sql: postgres.Sql;
  /** Those that are in service: tests take out what they kill or stop. */
  managements: Management[];
  edges: Edge[];
  startManagement(): Promise<Management>;
  startGateway(): Promise<ServiceProcess>;
  close(): Promise<void>;
};

const defaultPostgresConnections = "10";

export async function startSystem(options: {
  managements: number;
  edges: number;
  postgres?: "shared" | "own";
}): Promise<System> {
  const [store, nats] = await Promise.all([
    options.postgres === "own" ? startRestartablePostgres() : createTestDatabase(),
    startRestartableNats(await natsServerBinary()),
  ]);
  const directory = mkdtempSync(join(tmpdir(), "halyard-e2e-"));
  const sql = postgres(store.adminUrl, {
    max: 4,
    connection: { search_path: "management" },
    onnotice: () => undefined,
  });
  const managements: Management[] = [];
  const everStarted: Management[] = [];
  const edges: Edge[] = [];
  const gateways: ServiceProcess[] = [];

  async function startManagement(): Promise<Management> {
    const gate = await openNatsGate(nats.url);
    const process = await startServiceProcess("management", {
      POSTGRES_URL: store.managementUrl,
      POSTGRES_MAX_CONNECTIONS: defaultPostgresConnections,
      NATS_URL: gate.url,
      OPERATOR_TOKEN: operatorToken,
    });
    const management = { ...process, gate };
    managements.push(management);
    everStarted.push(management);
    return management;
  }

  async function startEdge(name: string): Promise<void> {
    const edge = await createEdge(name, nats.url, join(directory, `${name}.cache`));
    edges.push(edge);
  }

  await Promise.all([
    ...Array.from({ length: options.managements }, startManagement),
    ...Array.from({ length: options.edges }, (_, index) => startEdge(`edge-${index + 1}`)),
  ]);
  edges.sort((left, right) => left.name.localeCompare(right.name));
  if (options.managements > 0) await Promise.all(edges.map(awaitReady));

  return {
    nats,
    postgres: "kill" in store ? store : undefined,
    sql,
    managements,
    edges,
    startManagement,
    async startGateway() {
      const gateway = await startServiceProcess("gateway", {
        UPSTREAM_MANAGEMENT_URL: managements.map(({ url }) => url).join(","),
        UPSTREAM_SDK_EDGE_URL: edges.map(({ url }) => url).join(","),
      });
      gateways.push(gateway);
      return gateway;
    },
    async close() {
      const processes = [...gateways, ...everStarted, ...edges.map((edge) => edge.process)];
      await Promise.all(processes.map((each) => each.kill()));
      await Promise.all(everStarted.map(({ gate }) => gate.close()));
      await sql.end({ timeout: 1 });
      await Promise.all([nats.stop(), "stop" in store ? store.stop() : store.drop()]);
      rmSync(directory, { recursive: true, force: true });
    },
  };
}

async function createEdge(name: string, natsUrl: string, cacheFile: string): Promise<Edge> {
  const run = (port: string) =>
    startServiceProcess("sdk-edge", {
      PORT: port,
      NATS_URL: natsUrl,
      SNAPSHOT_CACHE_FILE: cacheFile,
    });
  const first = await run("0");
  const edge: Edge = {
    name,
    url: first.url,
    process: first,
    cacheFile,
    async start({ awaitReady: wait = true } = {}) {
      edge.process = await run(new URL(edge.url).port);
      if (wait) await awaitReady(edge);
    },
  };
  return edge;
}

export async function awaitReady(edge: Edge): Promise<void> {
  await eventually(async () => (await call(`${edge.process.metricsUrl}/readyz`)).status === 200, {
    because: `${edge.name} is ready`,
    withinMs: 20_000,
  });
}

/** The management process that leads the relay, from when one does. */
export async function awaitLeader(managements: readonly Management[]): Promise<Management> {
  return eventually(
    async () => {
      for (const management of managements) {
        const { body } = await call(`${management.metricsUrl}/readyz`);
        if (body.relay === "leading") return management;
      }
      return undefined;
    },
    { because: "one management leads the relay" },
  );
}
