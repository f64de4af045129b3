import { type ChildProcess, fork } from "node:child_process";
import { once } from "node:events";
import { rmSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import type { RunDescription } from "./run.ts";

/** Longer than a service or a server needs to stop. */
const stopTimeoutMs = 25_000;
const pollIntervalMs = 50;

/** Interval of the check whether npm still runs. A killed npm sends no signal. */
const parentPollIntervalMs = 500;

/**
 * The launcher: the process of `npm start`. Its child in another session executes the run. When the launcher ends for
 * any reason, even SIGKILL, the system closes the channel between them, and the run stops everything in order. If the
 * run is killed instead, the launcher stops what is left: the processes in the run's group.
 */
const parent = process.ppid;
const program = join(import.meta.dirname, "run-process.ts");
const run = fork(program, process.argv.slice(2), {
  detached: true,
  stdio: ["ignore", "inherit", "inherit", "ipc"],
});
let files: string[] = [];
run.once("message", (description: RunDescription) => {
  files = description.files;
  if (description.startedByNpm) setInterval(endWithNpm, parentPollIntervalMs).unref();
});
for (const signal of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
  process.on(signal, () => run.kill(signal));
}
type Exit = [code: number | null, signal: NodeJS.Signals | null];
const [code, signal] = (await once(run, "exit")) as Exit;
if (signal === null) process.exit(code ?? 1);
for (const file of files) rmSync(file, { force: true });
await stopGroup(run);
process.stderr.write(
  `\nHalyard ended by ${signal}. All its processes have been stopped. Run npm start to start again.\n`,
);
process.exit(1);

function endWithNpm(): void {
  if (process.ppid !== parent && run.connected) run.disconnect();
}

async function stopGroup({ pid }: ChildProcess): Promise<void> {
  if (pid === undefined) return;
  const deadline = Date.now() + stopTimeoutMs;
  if (!signalGroup(pid, "SIGTERM")) return;
  while (signalGroup(pid, 0) && Date.now() < deadline) await delay(pollIntervalMs);
  signalGroup(pid, "SIGKILL");
}

/** Returns whether the group has processes. */
function signalGroup(pid: number, signal: NodeJS.Signals | 0): boolean {
  try {
    return process.kill(-pid, signal);
  } catch (error) {
    // All processes of the group have ended.
    if ((error as NodeJS.ErrnoException).code === "ESRCH") return false;
    throw error;
  }
}
