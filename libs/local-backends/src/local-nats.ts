import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import {
  type BackgroundProcess,
  type ExitStatus,
  type StopStep,
  startBackgroundProcess,
} from "./background-process.ts";
import { awaitEarlierServer } from "./earlier-server.ts";
import { readIfPresent, readLogTail } from "./files.ts";
import { portState } from "./free-port.ts";
import { natsServerVersion } from "./nats-server-binary.ts";
import { identifyProcess, isSameProcessRunning, type ProcessIdentity } from "./process-identity.ts";
import type { Reaper } from "./reaper.ts";
import { StartError } from "./start-error.ts";

const HOST = "127.0.0.1";

/** Maximum size of a message. A snapshot entry contains at most the content of one HTTP body of 1 MiB. */
const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;

/** Time-out of a start, which usually takes a fraction of a second. Recovering large streams takes longer. */
const START_TIMEOUT_MS = 60_000;
const POLL_INTERVAL_MS = 20;

const STOP_STEPS: StopStep[] = [{ signal: "SIGTERM", timeoutMs: 15_000 }];

export type LocalNatsOptions = {
  binary: string;
  /** Directory of the streams, the log and the configuration of the server. */
  storeDir: string;
  /** A fixed port, for a restart on the same address. By default, a free port is used. */
  port?: number;
  /** Further lines of the server's configuration, such as users or TLS. */
  settings?: string;
  reaper?: Reaper;
  onStep?: (text: string) => void;
};

export type LocalNats = {
  url: string;
  port: number;
  version: string;
  logFile: string;
  pid: number;
  exited: Promise<ExitStatus>;
  stop(): Promise<ExitStatus>;
};

/** Starts a NATS server with JetStream on 127.0.0.1, and resolves when it accepts connections. */
export async function startLocalNats(options: LocalNatsOptions): Promise<LocalNats> {
  mkdirSync(options.storeDir, { recursive: true, mode: 0o700 });
  await awaitEarlierServer({
    name: "nats-server",
    dataDir: options.storeDir,
    find: () => findOwner(options.storeDir),
    stopCommand: "kill",
    onStep: options.onStep ?? (() => {}),
  });
  const configFile = join(options.storeDir, "nats-server.conf");
  writeFileSync(configFile, configuration(options), { mode: 0o600 });
  const server = await startBackgroundProcess({
    command: options.binary,
    args: ["--config", configFile],
    logFile: join(options.storeDir, "nats-server.log"),
    workingDirectory: options.storeDir,
    environment: {},
    stopSteps: STOP_STEPS,
  });
  options.reaper?.guard(server.pid, { stopSignal: "SIGTERM" });
  recordOwner(options.storeDir, server.pid);
  const url = await readUrlWhenReady(server, options);
  return {
    url,
    port: Number(new URL(url).port),
    version: (await natsServerVersion(options.binary)) ?? "of an unknown version",
    logFile: server.logFile,
    pid: server.pid,
    exited: server.exited,
    stop: server.stop,
  };
}

/** Returns the server's configuration. JSON strings are valid strings in its language. */
function configuration({ storeDir, port, settings = "" }: LocalNatsOptions): string {
  const directory = JSON.stringify(storeDir);
  return [
    `listen: "${HOST}:${port ?? -1}"`,
    `max_payload: ${MAX_PAYLOAD_BYTES}`,
    `ports_file_dir: ${directory}`,
    `jetstream { store_dir: ${directory} }`,
    settings,
    "",
  ].join("\n");
}

/** Reads the URL from the ports file, which the server writes when it listens. */
async function readUrlWhenReady(
  server: BackgroundProcess,
  options: LocalNatsOptions,
): Promise<string> {
  const portsFile = join(options.storeDir, `${basename(options.binary)}_${server.pid}.ports`);
  const deadline = Date.now() + START_TIMEOUT_MS;
  for (;;) {
    const url = readPortsFile(portsFile);
    if (url !== undefined) {
      rmSync(portsFile, { force: true });
      return url;
    }
    if (server.hasExited()) throw await cannotStart(server, options);
    if (Date.now() > deadline) {
      await server.stop();
      throw new StartError(
        `nats-server was not ready within ${START_TIMEOUT_MS / 1000} s. Its log is ${server.logFile}.`,
      );
    }
    await delay(POLL_INTERVAL_MS);
  }
}

function readPortsFile(file: string): string | undefined {
  const text = readIfPresent(file);
  // The file is not written atomically, so it may be incomplete.
  if (text === undefined || !text.trimEnd().endsWith("}")) return undefined;
  return (JSON.parse(text) as { nats?: string[] }).nats?.[0];
}

async function cannotStart(server: BackgroundProcess, options: LocalNatsOptions): Promise<Error> {
  const { port, storeDir } = options;
  if (port !== undefined && (await portState({ host: HOST, port })) !== "free") {
    return new StartError(
      `The port ${port} for NATS is taken by another process. Stop that process or choose another port.`,
    );
  }
  const lines = readLogTail(server.logFile, 5).map((line) => `\n  ${line}`);
  return new StartError(
    `nats-server cannot start on the data in ${storeDir}. The end of its log (${server.logFile}):` +
      `${lines.join("")}\nIf the data are damaged, move them away to begin with empty ones: ` +
      `mv '${storeDir}' '${storeDir}.damaged'`,
  );
}

/**
 * Records the process that uses the store. nats-server does not detect a second server on its store, and the two would
 * destroy each other's streams.
 */
function recordOwner(storeDir: string, pid: number): void {
  const identity = identifyProcess(pid);
  if (identity !== undefined) writeFileSync(ownerFileIn(storeDir), JSON.stringify(identity));
}

function findOwner(storeDir: string): number[] {
  try {
    const owner: ProcessIdentity | null = JSON.parse(
      readIfPresent(ownerFileIn(storeDir)) ?? "null",
    );
    return owner !== null && isSameProcessRunning(owner) ? [owner.pid] : [];
  } catch (error) {
    // A record that a power failure truncated belongs to a process before that failure.
    if (error instanceof SyntaxError) return [];
    throw error;
  }
}

function ownerFileIn(storeDir: string): string {
  return join(storeDir, "nats-server.process");
}
