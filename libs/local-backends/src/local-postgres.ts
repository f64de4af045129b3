import { rmSync } from "node:fs";
import { join } from "node:path";
import type { BackgroundProcess, StopStep } from "./background-process.ts";
import { awaitEarlierServer } from "./earlier-server.ts";
import { readIfPresent } from "./files.ts";
import { findFreePort, portState } from "./free-port.ts";
import {
  locatePostgresBinaries,
  type PostgresBinaries,
  provideBinariesTo,
} from "./postgres-binaries.ts";
import { prepareCluster, restoreAdvice, SUPERUSER } from "./postgres-cluster.ts";
import { type PostgresHome, settlePostgresHome } from "./postgres-home.ts";
import { awaitReady, cannotStart, HOST, portTaken, startServer } from "./server-start.ts";

/** Directory for files that PostgreSQL's user must reach, if root starts it and the user cannot reach the project. */
const REACHABLE_DIRECTORY = "/var/lib/halyard";

/** Maximum number of ports to try. Another process can take a free port before PostgreSQL listens on it. */
const PORT_ATTEMPTS = 5;

/** Time-out of a start, which usually takes a fraction of a second. Recovery after a crash takes longer. */
const START_TIMEOUT_MS = 120_000;

/** SIGINT ends sessions and writes a checkpoint. SIGQUIT exits immediately, and the next start recovers. */
const STOP_STEPS: StopStep[] = [
  { signal: "SIGINT", timeoutMs: 15_000 },
  { signal: "SIGQUIT", timeoutMs: 5_000 },
];

type LocalPostgresOptions = {
  /** Directory of the password and the log, and of the data if PostgreSQL's user can reach it. */
  dataDir: string;
  /** A fixed port, for a restart on the same address. By default, a free port is used. */
  port?: number;
  maxConnections?: number;
  /** False trades safety against power loss for speed. Only for throwaway data. */
  durable?: boolean;
  reachableDirectory?: string;
  /** Stops the server, and removes this directory, when the launcher ends. For tests. */
  throwaway?: boolean;
  onStep?: (text: string) => void;
};

export type LocalPostgres = BackgroundProcess & {
  adminUrl: string;
  host: string;
  port: number;
  superuser: string;
  password: string;
  version: string;
  clusterDir: string;
};

type Launch = { home: PostgresHome; binaries: PostgresBinaries; options: LocalPostgresOptions };

/** Starts a PostgreSQL server on 127.0.0.1, and resolves when it accepts connections. */
export async function startLocalPostgres(options: LocalPostgresOptions): Promise<LocalPostgres> {
  const { onStep = () => {}, reachableDirectory: location = REACHABLE_DIRECTORY } = options;
  const home = settlePostgresHome({ dataDir: options.dataDir, location, onStep });
  const located = locatePostgresBinaries();
  const binaries =
    home.user === undefined
      ? located
      : provideBinariesTo(home.user, { binaries: located, location, onStep });
  const password = await prepareCluster({ home, binaries, durable: options.durable ?? true });
  await awaitEarlierServer({
    name: "PostgreSQL",
    dataDir: home.clusterDir,
    stopCommand: "kill -INT",
    onStep,
  });
  // PostgreSQL does not start if this file contains the id of a running process, even of another program.
  rmSync(postmasterFileIn(home.clusterDir), { force: true });
  const { server, port } = await launchOnSomePort({ home, binaries, options });
  return {
    ...server,
    adminUrl: `postgres://${SUPERUSER}:${password}@${HOST}:${port}/postgres`,
    host: HOST,
    port,
    superuser: SUPERUSER,
    password,
    version: binaries.version,
    clusterDir: home.clusterDir,
  };
}

async function launchOnSomePort(
  launch: Launch,
): Promise<{ server: BackgroundProcess; port: number }> {
  const fixedPort = launch.options.port;
  for (let attempt = 1; ; attempt += 1) {
    const port = fixedPort ?? (await findFreePort(HOST));
    const server = await launchServer(launch, port);
    const readReady = () => readPostmasterFile(launch.home.clusterDir, server.pid);
    const wait = { name: "PostgreSQL", timeoutMs: START_TIMEOUT_MS, readReady };
    if (await awaitReady(server, wait)) return { server, port };
    const portWasFree = (await portState({ host: HOST, port })) === "free";
    if (!portWasFree && fixedPort !== undefined) throw portTaken("PostgreSQL", port);
    const { clusterDir: directory, logFile } = launch.home;
    const advice = `: ${restoreAdvice(launch.home)}`;
    if (portWasFree || attempt === PORT_ATTEMPTS)
      throw cannotStart({ name: "PostgreSQL", directory, logFile, advice });
  }
}

async function launchServer(
  { home, binaries, options }: Launch,
  port: number,
): Promise<BackgroundProcess> {
  const durability = (options.durable ?? true) ? "on" : "off";
  const settings = {
    listen_addresses: HOST,
    port,
    unix_socket_directories: "",
    max_connections: options.maxConnections ?? 100,
    fsync: durability,
    synchronous_commit: durability,
    full_page_writes: durability,
    log_timezone: "UTC",
    timezone: "UTC",
  };
  const process = {
    command: join(binaries.directory, "bin/postgres"),
    args: [
      "-D",
      home.clusterDir,
      ...Object.entries(settings).flatMap(([name, value]) => ["-c", `${name}=${value}`]),
    ],
    logFile: home.logFile,
    workingDirectory: "/",
    environment: { LC_ALL: "C" },
    stopSteps: STOP_STEPS,
    user: home.user && { uid: home.user.uid, gid: home.user.gid },
  };
  return startServer(process, options.throwaway ? options.dataDir : undefined);
}

/** Returns true if PostgreSQL reports in `postmaster.pid` that it is ready. */
function readPostmasterFile(clusterDir: string, pid: number): true | undefined {
  const lines = readIfPresent(postmasterFileIn(clusterDir))?.split("\n") ?? [];
  return (lines[0] === String(pid) && lines[7]?.trim() === "ready") || undefined;
}

function postmasterFileIn(clusterDir: string): string {
  return join(clusterDir, "postmaster.pid");
}
