import { fork } from "node:child_process";
import { once } from "node:events";
import { fileURLToPath } from "node:url";
import {
  type BackgroundOptions,
  type BackgroundProcess,
  type ExitStatus,
  exitOf,
} from "./background-process.ts";
import { hasCode } from "./files.ts";

/** A server and the directory of its data, which end with the launcher. */
export type ThrowawayServer = BackgroundOptions & { throwawayDir: string };

export type GuardMessage = { pid: number } | { status: ExitStatus } | { failure: string };

/**
 * Starts a server as the child of a guard: a small process with a channel to the launcher. When the launcher ends for
 * any reason, even SIGKILL, the system closes the channel. The guard then stops the server and removes its data. If the
 * guard is killed instead, the launcher stops the server, and reports the end of the guard as that of the server.
 */
export async function startGuardedServer(server: ThrowawayServer): Promise<BackgroundProcess> {
  const started = Promise.withResolvers<number>();
  const ended = Promise.withResolvers<ExitStatus>();
  let hasEnded = false;
  const end = (status: ExitStatus) => {
    hasEnded = true;
    ended.resolve(status);
  };
  const guard = fork(
    fileURLToPath(new URL("./guard-process.ts", import.meta.url)),
    [JSON.stringify(server)],
    { cwd: "/", env: {}, execArgv: [], stdio: ["ignore", "ignore", "ignore", "ipc"] },
  );
  guard.on("message", (message: GuardMessage) => {
    if ("pid" in message) started.resolve(message.pid);
    else if ("failure" in message) started.reject(new Error(message.failure));
    else end(message.status);
  });
  guard.once("error", started.reject);
  const guardEnded = exitOf(guard);
  // Unlike the exit, it follows the last message.
  const disconnected = once(guard, "disconnect");
  const pid = await Promise.race([started.promise, disconnected]);
  if (typeof pid !== "number") throw new Error(`${server.command} could not be started`);
  void disconnected.then(async () => {
    if (hasEnded) return;
    stopOrphan(pid, server.stopSteps[0]?.signal ?? "SIGTERM");
    end(await guardEnded);
  });
  return {
    pid,
    logFile: server.logFile,
    exited: ended.promise,
    hasExited: () => hasEnded,
    stop() {
      if (guard.connected) guard.send("stop", () => {});
      return ended.promise;
    },
  };
}

function stopOrphan(pid: number, signal: NodeJS.Signals): void {
  try {
    process.kill(pid, signal);
  } catch (error) {
    // The server has ended with its guard.
    if (!hasCode(error, "ESRCH")) throw error;
  }
}
