import { setTimeout as delay } from "node:timers/promises";
import {
  type BackgroundOptions,
  type BackgroundProcess,
  startBackgroundProcess,
} from "./background-process.ts";
import { readLogTail } from "./files.ts";
import { startGuardedServer } from "./guarded-server.ts";
import { StartError } from "./start-error.ts";

/** The address of all local servers. */
export const HOST = "127.0.0.1";

const POLL_INTERVAL_MS = 20;

/** Starts a server in the background. With `throwawayDir`, the server and this directory end with the launcher. */
export function startServer(
  server: BackgroundOptions,
  throwawayDir: string | undefined,
): Promise<BackgroundProcess> {
  return throwawayDir === undefined
    ? startBackgroundProcess(server)
    : startGuardedServer({ ...server, throwawayDir });
}

/**
 * Waits until `readReady` returns a value, and returns it; undefined if the server has ended instead.
 *
 * @throws StartError after the time-out, when it has stopped the server
 */
export async function awaitReady<T>(
  server: BackgroundProcess,
  wait: { name: string; timeoutMs: number; readReady: () => T | undefined },
): Promise<T | undefined> {
  const deadline = Date.now() + wait.timeoutMs;
  while (!server.hasExited()) {
    const ready = wait.readReady();
    if (ready !== undefined) return ready;
    if (Date.now() > deadline) {
      await server.stop();
      throw new StartError(
        `${wait.name} was not ready within ${wait.timeoutMs / 1000} s. Its log is ${server.logFile}.`,
      );
    }
    await delay(POLL_INTERVAL_MS);
  }
  return undefined;
}

export function portTaken(name: string, port: number): StartError {
  return new StartError(
    `The port ${port} for ${name} is taken by another process. Stop that process or choose another port.`,
  );
}

export function cannotStart(problem: {
  name: string;
  directory: string;
  logFile: string;
  /** Completes the sentence "If the data are damaged …". */
  advice: string;
}): StartError {
  const lines = readLogTail(problem.logFile, 5).map((line) => `\n  ${line}`);
  return new StartError(
    `${problem.name} cannot start on the data in ${problem.directory}. ` +
      `The end of its log (${problem.logFile}):${lines.join("")}\nIf the data are damaged${problem.advice}`,
  );
}
