import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  type BackgroundProcess,
  type ExitStatus,
  type StopStep,
  startBackgroundProcess,
} from "./background-process.ts";
import { awaitEarlierServer } from "./earlier-server.ts";
import { readLogTail } from "./files.ts";
import { findFreePort, portState } from "./free-port.ts";
import {
  locatePostgresBinaries,
  type PostgresBinaries,
  provideBinariesTo,
} from "./postgres-binaries.ts";
import { prepareCluster, SUPERUSER, wayOut } from "./postgres-cluster.ts";
import { type PostgresHome, settlePostgresHome } from "./postgres-home.ts";
import { findPostgresOn, postmasterFileIn, readPostmasterFile } from "./postgres-processes.ts";
import type { Reaper } from "./reaper.ts";
import { StartError } from "./start-error.ts";

const HOST = "127.0.0.1";

/** Where root keeps what PostgreSQL's user must reach, when the project lies in a closed directory. */
const REACHABLE_DIRECTORY = "/var/lib/halyard";

/** A found port can be taken by another process before PostgreSQL listens; that is rare. */
const PORT_ATTEMPTS = 5;

/** Recovery after a crash may replay a lot; a healthy start takes a fraction of a second. */
const START_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 20;

/** SIGINT ends sessions and writes a checkpoint, SIGQUIT gives up at once and recovers next time. */
const STOP_STEPS: StopStep[] = [
  { signal: "SIGINT", timeoutMs: 15_000 },
  { signal: "SIGQUIT", timeoutMs: 5_000 },
];

export type LocalPostgresOptions = {
  /** Holds the password, the log and, unless PostgreSQL's user cannot reach it, the data. */
  dataDir: string;
  /** A fixed port, for a restart that must come back on the same address; default: a free one. */
  port?: number;
  maxConnections?: number;
  /** False gives up safety against power loss for speed: only for data that nobody will miss. */
  durable?: boolean;
  reachableDirectory?: string;
  reaper?: Reaper;
  onStep?: (text: string) => void;
};

export type LocalPostgres = {
  adminUrl: string;
  host: string;
  port: number;
  superuser: string;
  password: string;
  version: string;
  clusterDir: string;
  logFile: string;
  pid: number;
  exited: Promise<ExitStatus>;
  stop(): Promise<ExitStatus>;
};

type Launch = { home: PostgresHome; binaries: PostgresBinaries; options: LocalPostgresOptions };

/** Starts a PostgreSQL server of our own on 127.0.0.1 and answers when it takes connections. */
export async function startLocalPostgres(options: LocalPostgresOptions): Promise<LocalPostgres> {
  const onStep = options.onStep ?? (() => {});
  const location = options.reachableDirectory ?? REACHABLE_DIRECTORY;
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
    find: () => findPostgresOn(home.clusterDir),
    stopCommand: "kill -INT",
    onStep,
  });
  // PostgreSQL does not start while this file names a living process, even if that is another program by now.
  rmSync(postmasterFileIn(home.clusterDir), { force: true });
  const { server, port } = await launchOnSomePort({ home, binaries, options });
  return {
    adminUrl: `postgres://${SUPERUSER}:${password}@${HOST}:${port}/postgres`,
    host: HOST,
    port,
    superuser: SUPERUSER,
    password,
    version: binaries.version,
    clusterDir: home.clusterDir,
    logFile: home.logFile,
    pid: server.pid,
    exited: server.exited,
    stop: server.stop,
  };
}

async function launchOnSomePort(
  launch: Launch,
): Promise<{ server: BackgroundProcess; port: number }> {
  const fixedPort = launch.options.port;
  for (let attempt = 1; ; attempt += 1) {
    const port = fixedPort ?? (await findFreePort(HOST));
    const server = await launchServer(launch, port);
    if (await becomesReady(server, launch.home.clusterDir)) return { server, port };
    const portWasFree = (await portState({ host: HOST, port })) === "free";
    if (!portWasFree && fixedPort !== undefined) throw portTaken(port);
    if (portWasFree || attempt === PORT_ATTEMPTS) throw cannotStart(launch.home);
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
  const server = await startBackgroundProcess({
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
  });
  options.reaper?.guard(server.pid, { stopSignal: "SIGINT" });
  return server;
}

/** PostgreSQL says in its own file when it is ready; false when it ended instead. */
async function becomesReady(server: BackgroundProcess, clusterDir: string): Promise<boolean> {
  const deadline = Date.now() + START_TIMEOUT_MS;
  while (!server.hasExited()) {
    const file = readPostmasterFile(clusterDir);
    if (file?.pid === server.pid && file.status === "ready") return true;
    if (Date.now() > deadline) {
      await server.stop();
      throw new StartError(
        `PostgreSQL was not ready within ${START_TIMEOUT_MS / 1000} s. Its log is ${server.logFile}.`,
      );
    }
    await delay(POLL_INTERVAL_MS);
  }
  return false;
}

function portTaken(port: number): StartError {
  return new StartError(
    `The port ${port} for PostgreSQL is taken by another process. Stop that process or choose another port.`,
  );
}

function cannotStart(home: PostgresHome): StartError {
  const lines = readLogTail(home.logFile, 5).map((line) => `\n  ${line}`);
  return new StartError(
    `PostgreSQL cannot start on the data in ${home.clusterDir}. ` +
      `The end of its log (${home.logFile}):${lines.join("")}\nIf the data are damaged: ${wayOut(home)}`,
  );
}
