import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { NatsStoreInUseError } from "./errors.ts";
import {
  hasCode,
  identifyProcess,
  isSameProcessRunning,
  type ProcessIdentity,
} from "./process-identity.ts";

/** How long an earlier server may take to end, for instance after its launcher was killed. */
const PATIENCE_MS = 15_000;
const LOOK_EVERY_MS = 50;

/**
 * nats-server does not notice when a second one is started on its store, and the two would destroy
 * each other's streams. So the store keeps a note of the process that works on it.
 */
export function recordOwner(storeDir: string, pid: number): void {
  const identity = identifyProcess(pid);
  if (identity !== undefined) writeFileSync(ownerFile(storeDir), JSON.stringify(identity));
}

/** Waits until the process that last worked on the store has ended. */
export async function awaitStoreFree(
  storeDir: string,
  onStep: (text: string) => void,
): Promise<void> {
  const owner = readOwner(storeDir);
  if (owner === undefined || !isSameProcessRunning(owner)) return;
  onStep(`waiting for an earlier nats-server to end (process ${owner.pid})`);
  const deadline = Date.now() + PATIENCE_MS;
  while (isSameProcessRunning(owner)) {
    if (Date.now() > deadline) {
      throw new NatsStoreInUseError(
        `Another nats-server (process ${owner.pid}) works on ${storeDir}. ` +
          `Stop it with \`kill ${owner.pid}\`, or choose another directory in HALYARD_HOME.`,
      );
    }
    await delay(LOOK_EVERY_MS);
  }
}

function ownerFile(storeDir: string): string {
  return join(storeDir, "nats-server.process");
}

function readOwner(storeDir: string): ProcessIdentity | undefined {
  try {
    return JSON.parse(readFileSync(ownerFile(storeDir), "utf8")) as ProcessIdentity;
  } catch (error) {
    // A note that was cut off by a power failure names a process of before that failure.
    if (hasCode(error, "ENOENT") || error instanceof SyntaxError) return undefined;
    throw error;
  }
}
