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
import { prepareCluster, restoreAdvice, SUPERUSER } from "./postgres-cluster.ts";
import { type PostgresHome, settlePostgresHome } from "./postgres-home.ts";
import { findPostgresOn, postmasterFileIn, readPostmasterFile } from "./postgres-processes.ts";
import type { Reaper } from "./reaper.ts";
import { StartError } from "./start-error.ts";

const HOST = "127.0.0.1";

/** Directory for files that PostgreSQL's user must reach, if root starts it and the user cannot reach the project. */
const REACHABLE_DIRECTORY = "/var/lib/halyard";

/** Maximum number of ports to try. Another process can take a free port before PostgreSQL listens on it. */
const PORT_ATTEMPTS = 5;

/** Time-out of a start, which usually takes a fraction of a second. Recovery after a crash takes longer. */
const START_TIMEOUT_MS = 120_000;
const POLL_INTERVAL_MS = 20;

/** SIGINT ends sessions and writes a checkpoint. SIGQUIT exits immediately, and the next start recovers. */
const STOP_STEPS: StopStep[] = [
  { signal: "SIGINT", timeoutMs: 15_000 },
  { signal: "SIGQUIT", timeoutMs: 5_000 },
];

export type LocalPostgresOptions = {
  /** Directory of the password and the log, and of the data if PostgreSQL's user can reach it. */
  dataDir: string;
  /** A fixed port, for a restart on the same address. By default, a free port is used. */
  port?: number;
  maxConnections?: number;
  /** False trades safety against power loss for speed. Only for throwaway data. */
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

/** Starts a PostgreSQL server on 127.0.0.1, and resolves when it accepts connections. */
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
  // PostgreSQL does not start if this file contains the id of a running process, even of another program.
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

/** Waits until PostgreSQL reports in `postmaster.pid` that it is ready. Returns false if it ended instead. */
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
      `The end of its log (${home.logFile}):${lines.join("")}\nIf the data are damaged: ${restoreAdvice(home)}`,
  );
}
