import { getStatus, type SystemStatus } from "@halyard/contracts";
import { answer } from "@halyard/http";
import type { DeadLetters } from "@halyard/jetstream";
import { pause } from "@halyard/timing";
import type { Logger } from "pino";
import type { Routes } from "../access/routes.ts";
import type { KnownProcesses } from "./known-processes.ts";
import type { Propagation } from "./propagation.ts";

export type ReadStatus = () => Promise<SystemStatus>;

export function registerStatusRoutes(routes: Routes, readStatus: ReadStatus): void {
  routes.read(getStatus, async () => answer.ok(await readStatus()));
}

/** Keeps the response within a second. NATS responds within milliseconds, or not at all. */
const deadLettersTimeoutMs = 700;

/** Creates the function that reads the status. It never fails: unknown parts are null. */
export function createReadStatus(options: {
  isConnected: () => boolean;
  processes: Pick<KnownProcesses, "list">;
  propagation: Pick<Propagation, "figures">;
  /** Undefined until NATS was connected for the first time. */
  readDeadLetters: () => Promise<DeadLetters> | undefined;
  logger: Logger;
}): ReadStatus {
  const { isConnected, logger } = options;

  async function readDeadLetters(): Promise<DeadLetters | undefined> {
    const ending = new AbortController();
    const timeout = pause(deadLettersTimeoutMs, ending.signal).then(() => undefined);
    const reading = options.readDeadLetters()?.catch((err: unknown) => {
      logger.warn({ err }, "the dead letters could not be read");
      return undefined;
    });
    const found = await Promise.race([reading, timeout]);
    ending.abort();
    return found;
  }

  return async () => {
    const connected = isConnected();
    const deadLetters = connected ? await readDeadLetters() : undefined;
    return {
      nats: { connected },
      processes: options.processes.list(),
      propagation: options.propagation.figures(),
      dead_letters: deadLetters === undefined ? null : deadLettersBody(deadLetters),
    };
  };
}

function deadLettersBody({ count, newest }: DeadLetters): SystemStatus["dead_letters"] {
  return {
    count,
    newest: newest.map(({ subject, reason = null, at }) => ({
      ...{ subject, reason },
      at: at.toISOString(),
    })),
  };
}
