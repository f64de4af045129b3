import { mkdirSync, writeFileSync } from "node:fs";
import { connect } from "node:net";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { BackgroundProcess } from "./background-process.ts";
import { readLogTail } from "./files.ts";
import { findFreePort } from "./free-port.ts";
import { startGuardedServer } from "./guarded-server.ts";
import { libraryVariables } from "./server-binaries.ts";
import { HOST } from "./server-start.ts";
import { StartError } from "./start-error.ts";

type LocalHaproxy = BackgroundProcess & { url: string; metricsUrl: string };

const pollIntervalMs = 20;

/** HAProxy ends its open streams 15 s after the signal for a soft stop. */
const stopSteps = [{ signal: "SIGUSR1", timeoutMs: 21_000 } as const];

type LocalHaproxyOptions = {
  binary: string;
  /** Directory of the configuration. */
  directory: string;
  logFile: string;
  configuration: string;
  port: number;
  metricsPort: number;
  /** Further variables of the configuration. */
  environment?: Readonly<Record<string, string>>;
};

/**
 * Starts HAProxy on 127.0.0.1, and resolves when it listens. It ends with the launcher, and its directory is then
 * removed. Port 0 selects a free port.
 *
 * @throws StartError with the end of the log
 */
export async function startLocalHaproxy(options: LocalHaproxyOptions): Promise<LocalHaproxy> {
  const { binary, directory, logFile } = options;
  mkdirSync(directory, { recursive: true, mode: 0o700 });
  const configFile = join(directory, "haproxy.cfg");
  writeFileSync(configFile, options.configuration, { mode: 0o600 });
  const port = options.port || (await findFreePort(HOST));
  const metricsPort = options.metricsPort || (await findFreePort(HOST));
  const server = await startGuardedServer({
    command: binary,
    args: ["-db", "-f", configFile],
    logFile,
    workingDirectory: directory,
    environment: {
      ...libraryVariables(binary),
      ...options.environment,
      ...{ HOST, PORT: String(port), METRICS_PORT: String(metricsPort) },
    },
    stopSteps: [...stopSteps],
    throwawayDir: directory,
  });
  while (!(await isListening(port))) {
    if (server.hasExited()) {
      const end = readLogTail(logFile, 5).join("\n");
      throw new StartError(`HAProxy did not start. The end of its log (${logFile}):\n${end}`);
    }
    await delay(pollIntervalMs);
  }
  return { ...server, url: `http://${HOST}:${port}`, metricsUrl: `http://${HOST}:${metricsPort}` };
}

function isListening(port: number): Promise<boolean> {
  return new Promise((resolve) => {
    const socket = connect(port, HOST);
    socket.once("connect", () => {
      socket.destroy();
      resolve(true);
    });
    socket.once("error", () => resolve(false));
  });
}
