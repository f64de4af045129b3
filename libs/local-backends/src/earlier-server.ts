import { setTimeout as delay } from "node:timers/promises";
import { processesOn } from "./running-processes.ts";
import { StartError } from "./start-error.ts";

/** Time for an earlier server to end, for example after its launcher was killed. */
const timeoutMs = 15_000;
const pollIntervalMs = 50;

/**
 * Waits until no process of an earlier start uses the data.
 *
 * @throws StartError if a process still uses it after 15 seconds; the message contains the command that stops it
 */
export async function awaitEarlierServer(options: {
  name: string;
  dataDir: string;
  stopCommand: string;
  onStep: (text: string) => void;
  timeoutMs?: number;
}): Promise<void> {
  const { name, dataDir } = options;
  const deadline = Date.now() + (options.timeoutMs ?? timeoutMs);
  let pids = processesOn(dataDir);
  if (pids.length > 0) {
    options.onStep(`waiting for an earlier ${name} to end (process ${pids.join(", ")})`);
  }
  while (pids.length > 0) {
    if (Date.now() > deadline) {
      throw new StartError(
        `Another ${name} (process ${pids[0]}) uses ${dataDir}. ` +
          `Stop it with \`${options.stopCommand} ${pids[0]}\`, or choose another directory in HALYARD_HOME.`,
      );
    }
    await delay(pollIntervalMs);
    pids = processesOn(dataDir);
  }
}
