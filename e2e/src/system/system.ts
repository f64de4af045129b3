import { createHash } from "node:crypto";
import { mkdtempSync, readFileSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Target } from "@halyard/gateway/route-table";
import {
  call,
  connectAsSuperuser,
  createTestDatabase,
  eventually,
  type NatsCluster,
  natsServerBinary,
  type RestartableNats,
  type RestartablePostgres,
  type ServiceProcess,
  startRestartableNats,
  startRestartablePostgres,
  startServiceProcess,
} from "@halyard/testing";
import type postgres from "postgres";
import { startHaproxy } from "./haproxy.ts";
import { type NatsGate, openNatsGate } from "./nats-gate.ts";
import type { PostgresPair } from "./postgres-pair.ts";
import { operatorToken } from "./tenancy.ts";

const operatorTokenDigest = createHash("sha256").update(operatorToken).digest("hex");

/**
 * A complete system of real processes: PostgreSQL, NATS, a gateway, and any number of management processes, schedulers,
 * webhook dispatchers, usage meterings and edges. Each process except the edges connects to NATS through its own gate.
 */
export type Replica = ServiceProcess & { gate: NatsGate };
export type Management = Replica;
export type Scheduler = Replica;
export type Dispatcher = Replica;
export type Metering = Replica;

/** The port to listen on. A successor uses the port of its predecessor; otherwise the system chooses one. */
type ListenPort = { port?: string };
type GatewayOptions = ListenPort & { proxy?: "built-in" | "haproxy" };
export type StartReplica = (listen?: ListenPort) => Promise<Replica>;

/** An edge, which keeps its address and its disk cache across restarts. */
export type Edge = {
  name: string;
  url: string;
  process: ServiceProcess;
  cacheFile: string;
  /** Starts the edge, and by default waits until it has a snapshot. */
  start(options?: { awaitReady?: boolean }): Promise<void>;
};

export type System = {
  /** Directory of the disk caches of the edges. */
  directory: string;
  nats: RestartableNats;
  /** The system's own PostgreSQL server, if it has one. */
  postgres: RestartablePostgres | undefined;
  /** Connection as superuser, with the schema of management. */
  sql: postgres.Sql;
  /** The processes in service. Tests remove the processes that they kill or stop. */
  managements: Management[];
  schedulers: Scheduler[];
  dispatchers: Dispatcher[];
  meterings: Metering[];
  edges: Edge[];
  startManagement: StartReplica;
  startScheduler: StartReplica;
  startDispatcher: StartReplica;
  startMetering: StartReplica;
  startGateway(options?: GatewayOptions): Promise<ServiceProcess>;
  /** Registers a function that ends something with the system, even if the test fails first. */
  endsWithSystem(end: () => Promise<void>): void;
  close(): Promise<void>;
};

const defaultPostgresConnections = "10";

/** The services that have a schema, with the name of the schema. */
const schemaOf = {
  management: "management",
  scheduler: "scheduler",
  "webhook-dispatcher": "webhooks",
  "usage-metering": "usage",
} as const;

/** Limits that tests do not reach, although they send many requests from one address and often with one key. */
const asOftenAsTheyLike = {
  KEY_REQUESTS_PER_SECOND: "100000",
  KEY_REQUESTS_BURST: "100000",
};

/** The key that all dispatchers share to encrypt the secrets of webhooks. */
const webhookSecretKeys = `tests:${Buffer.alloc(32, "k").toString("base64")}`;

/** Upstream of services that the system does not have. No process listens there. */
const unused = "http://127.0.0.1:1";

/** Additional environment variables, by service. */
export type Settings = Partial<
  Record<
    | "management"
    | "scheduler"
    | "webhook-dispatcher"
    | "usage-metering"
    | "sdk-edge"
    | "dashboard"
    | "gateway",
    Readonly<Record<string, string>>
  >
>;

/** Returns the log lines of the NATS server about operations that a user has no permission for. */
function deniedOperations(storeDir: string): string[] {
  const log = readFileSync(join(storeDir, "nats-server.log"), "utf8");
  return log.split("\n").filter((line) => line.includes("Violation"));
}

export async function startSystem(options: {
  managements: number;
  /** Default 0. */
  schedulers?: number;
  /** Default 0. */
  dispatchers?: number;
  /** Default 0. */
  meterings?: number;
  edges: number;
  postgres?: "shared" | "own" | PostgresPair;
  /** By default, one server. The processes connect to all servers of a cluster, and not through their gates. */
  nats?: NatsCluster;
  /**
   * Returns additional variables, which are read at every start of a process. The argument is the directory of the disk
   * caches of the edges.
   */
  settings?: (directory: string) => Settings;
}): Promise<System> {
  const [store, nats] = await Promise.all([
    openStore(options.postgres),
    options.nats ?? startRestartableNats(await natsServerBinary()),
  ]);
  const cluster = options.nats && {
    NATS_URL: options.nats.urls,
    JETSTREAM_REPLICAS: String(options.nats.nodes.length),
  };
  const directory = mkdtempSync(join(tmpdir(), "halyard-e2e-"));
  const settings = options.settings?.(directory) ?? {};
  const sql = connectAsSuperuser(store.adminUrl, "management");
  const managements: Management[] = [];
  const schedulers: Scheduler[] = [];
  const dispatchers: Dispatcher[] = [];
  const meterings: Metering[] = [];
  const edges: Edge[] = [];
  const started: ServiceProcess[] = [];
  const gates: NatsGate[] = [];
  const begun: (() => Promise<void>)[] = [];

  async function openGate(): Promise<NatsGate> {
    const gate = await openNatsGate(nats.url);
    gates.push(gate);
    return gate;
  }

  /** Returns a function that starts processes of a service with the given variables. */
  function starterOf(
    service: keyof typeof schemaOf,
    inService: Replica[],
    variables: Record<string, string> = {},
  ): StartReplica {
    return async ({ port = "0" } = {}) => {
      const gate = await openGate();
      const process = await startServiceProcess(service, {
        PORT: port,
        POSTGRES_URL: store.runtimeUrls[schemaOf[service]],
        POSTGRES_MAX_CONNECTIONS: defaultPostgresConnections,
        NATS_URL: gate.url,
        OPERATOR_TOKEN_DIGEST: operatorTokenDigest,
        // No test of this system signs in, but routes about people exist only with it.
        PUBLIC_URL: "http://localhost:8080",
        ...variables,
        ...cluster,
        ...asOftenAsTheyLike,
        ...settings[service],
      });
      const replica = { ...process, gate };
      inService.push(replica);
      started.push(replica);
      return replica;
    };
  }

  const startManagement = starterOf("management", managements, {
    OPERATOR_TOKEN: operatorToken,
  });
  const startScheduler = starterOf("scheduler", schedulers);
  const startDispatcher = starterOf("webhook-dispatcher", dispatchers, {
    WEBHOOK_SECRET_KEYS: webhookSecretKeys,
    // The receivers of tests run on this machine.
    WEBHOOK_ALLOW_PRIVATE_TARGETS: "true",
  });
  const startMetering = starterOf("usage-metering", meterings);

  async function startEdge(name: string): Promise<void> {
    const edge = await createEdge(name, join(directory, `${name}.cache`), () => ({
      NATS_URL: nats.url,
      OPERATOR_TOKEN_DIGEST: operatorTokenDigest,
      ...cluster,
      ...settings["sdk-edge"],
    }));
    edges.push(edge);
  }

  /** Starts the process that serves the pages. All gateways use the same process. */
  let dashboard: Promise<string> | undefined;
  async function startDashboard(): Promise<string> {
    const process = await startServiceProcess("dashboard", settings.dashboard ?? {});
    started.push(process);
    return process.url;
  }

  async function startGateway({ port = "0", proxy = "built-in" }: GatewayOptions = {}) {
    dashboard ??= startDashboard();
    const upstreams: Record<Target, string> = {
      management: managements.map(({ url }) => url).join(","),
      scheduler: schedulers.map(({ url }) => url).join(",") || unused,
      "sdk-edge": edges.map(({ url }) => url).join(","),
      "usage-metering": meterings.map(({ url }) => url).join(",") || unused,
      "webhook-dispatcher": dispatchers.map(({ url }) => url).join(",") || unused,
      dashboard: await dashboard,
    };
    const variables = Object.entries(upstreams).map(([name, urls]) => [
      `UPSTREAM_${name.toUpperCase().replace("-", "_")}_URL`,
      urls,
    ]);
    const gateway =
      proxy === "haproxy"
        ? await startHaproxy(upstreams, { PORT: port, ...settings.gateway })
        : await startServiceProcess("gateway", {
            PORT: port,
            ...Object.fromEntries(variables),
            ...settings.gateway,
          });
    started.push(gateway);
    return gateway;
  }

  async function close(): Promise<void> {
    await Promise.all(begun.map((end) => end()));
    const processes = [...started, ...edges.map((edge) => edge.process)];
    await Promise.all(processes.map((each) => each.kill()));
    await Promise.all(gates.map((gate) => gate.close()));
    await sql.end({ timeout: 1 });
    const denied = deniedOperations(nats.storeDir);
    await Promise.all([nats.stop(), "stop" in store ? store.stop() : store.drop()]);
    rmSync(directory, { recursive: true, force: true });
    if (denied.length > 0) throw new Error(`NATS denied operations:\n${denied.join("\n")}`);
  }

  try {
    await allOf([
      ...Array.from({ length: options.managements }, () => startManagement()),
      ...Array.from({ length: options.schedulers ?? 0 }, () => startScheduler()),
      ...Array.from({ length: options.dispatchers ?? 0 }, () => startDispatcher()),
      ...Array.from({ length: options.meterings ?? 0 }, () => startMetering()),
      ...Array.from({ length: options.edges }, (_, index) => startEdge(`edge-${index + 1}`)),
    ]);
    edges.sort((left, right) => left.name.localeCompare(right.name));
    if (options.managements > 0)
      await allOf([
        ...edges.map(awaitReady),
        ...schedulers.map((process) => awaitReady({ name: "a scheduler", process })),
        ...dispatchers.map((process) => awaitReady({ name: "a dispatcher", process })),
        ...meterings.map((process) => awaitReady({ name: "a metering", process })),
      ]);
  } catch (error) {
    await close();
    throw error;
  }

  return {
    directory,
    nats,
    postgres: "kill" in store ? store : undefined,
    sql,
    managements,
    schedulers,
    dispatchers,
    meterings,
    edges,
    startManagement,
    startScheduler,
    startDispatcher,
    startMetering,
    startGateway,
    endsWithSystem: (end) => void begun.push(end),
    close,
  };
}

function openStore(postgres: "shared" | "own" | PostgresPair = "shared") {
  if (typeof postgres === "object") return postgres;
  return postgres === "own" ? startRestartablePostgres() : createTestDatabase();
}

/** Waits for all attempts before it reports a failure, so that the caller can end everything that was started. */
async function allOf(attempts: readonly Promise<unknown>[]): Promise<void> {
  const failed = (await Promise.allSettled(attempts)).find(({ status }) => status === "rejected");
  if (failed?.status === "rejected") throw failed.reason;
}

async function createEdge(
  name: string,
  cacheFile: string,
  settings: () => Record<string, string>,
): Promise<Edge> {
  const run = (port: string) =>
    startServiceProcess("sdk-edge", { ...settings(), PORT: port, SNAPSHOT_CACHE_FILE: cacheFile });
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

/** Waits until a process is ready, which for an edge means that it has a snapshot. */
export async function awaitReady(one: { name: string; process: ServiceProcess }): Promise<void> {
  const readiness = async () => {
    const { status, body } = await call(`${one.process.metricsUrl}/readyz`);
    return { status, body };
  };
  await eventually(readiness, {
    because: `${one.name} is ready`,
    until: ({ status }) => status === 200,
  });
}

/** Waits for a management process that leads the relay, and returns it. */
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
