import { mkdirSync, rmSync, writeFileSync } from "node:fs";
import { basename, join } from "node:path";
import type { BackgroundProcess, StopStep } from "./background-process.ts";
import { awaitEarlierServer } from "./earlier-server.ts";
import { readIfPresent } from "./files.ts";
import { portState } from "./free-port.ts";
import { awaitReady, cannotStart, HOST, portTaken, startServer } from "./server-start.ts";

/** Maximum size of a message. A snapshot entry contains at most the content of one HTTP body of 1 MiB. */
const MAX_PAYLOAD_BYTES = 8 * 1024 * 1024;

/** Time-out of a start, which usually takes a fraction of a second. Recovering large streams takes longer. */
const START_TIMEOUT_MS = 60_000;

const STOP_STEPS: StopStep[] = [{ signal: "SIGTERM", timeoutMs: 15_000 }];

type LocalNatsOptions = {
  binary: string;
  /** Directory of the streams, the log and the configuration of the server. */
  storeDir: string;
  /** A fixed port, for a restart on the same address. By default, a free port is used. */
  port?: number;
  /** Further lines of the server's configuration, such as users or TLS. */
  settings?: string;
  /** Stops the server, and removes this directory, when the launcher ends. For tests. */
  throwaway?: boolean;
  onStep?: (text: string) => void;
};

export type LocalNats = BackgroundProcess & { url: string; port: number };

/**
 * Starts a NATS server with JetStream on 127.0.0.1, and resolves when it accepts connections. nats-server does not
 * detect a second server on its store, and the two would destroy each other's streams.
 */
export async function startLocalNats(options: LocalNatsOptions): Promise<LocalNats> {
  const { binary, storeDir, throwaway, onStep = () => {} } = options;
  mkdirSync(storeDir, { recursive: true, mode: 0o700 });
  await awaitEarlierServer({
    name: "nats-server",
    dataDir: storeDir,
    stopCommand: "kill",
    onStep,
  });
  const configFile = join(storeDir, "nats-server.conf");
  writeFileSync(configFile, configuration(options), { mode: 0o600 });
  const process = {
    command: binary,
    args: ["--config", configFile],
    logFile: join(storeDir, "nats-server.log"),
    workingDirectory: storeDir,
    environment: {},
    stopSteps: STOP_STEPS,
  };
  const server = await startServer(process, throwaway ? storeDir : undefined);
  const portsFile = join(storeDir, `${basename(binary)}_${server.pid}.ports`);
  const readReady = () => readPortsFile(portsFile);
  const url = await awaitReady(server, {
    name: "nats-server",
    timeoutMs: START_TIMEOUT_MS,
    readReady,
  });
  if (url === undefined) throw await explainEnd(options, server.logFile);
  rmSync(portsFile, { force: true });
  return { ...server, url, port: Number(new URL(url).port) };
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
function readPortsFile(file: string): string | undefined {
  const text = readIfPresent(file);
  // The file is not written atomically, so it may be incomplete.
  if (text === undefined || !text.trimEnd().endsWith("}")) return undefined;
  return (JSON.parse(text) as { nats?: string[] }).nats?.[0];
}

async function explainEnd({ port, storeDir }: LocalNatsOptions, logFile: string): Promise<Error> {
  if (port !== undefined && (await portState({ host: HOST, port })) !== "free")
    return portTaken("NATS", port);
  const advice = `, move them away to begin with empty ones: mv '${storeDir}' '${storeDir}.damaged'`;
  return cannotStart({ name: "nats-server", directory: storeDir, logFile, advice });
}
