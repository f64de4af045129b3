import { setTimeout as delay } from "node:timers/promises";
import type { Sql } from "@halyard/postgres";
import { isRefusal } from "@halyard/service";
import type { Logger } from "pino";
import type { Writer } from "../outbox/write.ts";
import { readBacklog } from "../relay/outbox-rows.ts";
import { hasFills } from "./environment-fill-store.ts";
import { createEnvironmentFills } from "./fill-environment.ts";

/**
 * Continues the fills of all environments, in every management process, one batch at a time. A batch is a
 * write like any other: it waits until the relay has sent its entries and live edges have applied them,
 * for at most 500 ms. Then the process pauses for as long as the batch took, so that the changes of other
 * tenants are published between batches.
 *
 * When a process dies, another one continues its fills.
 */
export type Filling = { stop(): Promise<void> };

/** Polling interval while no environment is being filled, or while fills are paused. */
const lookAgainAfterMs = 500;

/** Unsent rows of the outbox at which fills pause: changes queue already, or NATS is disconnected. */
const unsentRowsAtMost = 1_000;

export function startFilling(options: {
  sql: Sql;
  writer: Writer;
  now: () => Date;
  newId: () => string;
  logger: Logger;
}): Filling {
  const { sql, writer, logger } = options;
  const fills = createEnvironmentFills(options);
  const stopping = new AbortController();

  /** Returns whether it wrote a batch. */
  async function fillOnce(): Promise<boolean> {
    if (!(await hasFills(sql))) return false;
    const { rows } = await readBacklog(sql, unsentRowsAtMost);
    if (rows === unsentRowsAtMost) return false;
    const filled = await writer(async (write) => ({ batch: await fills.continue(write) }));
    if (isRefusal(filled) || filled.batch === undefined) return false;
    const { environmentId, isComplete } = filled.batch;
    if (isComplete) logger.info({ environmentId }, "the environment contains all flags");
    return true;
  }

  async function run(): Promise<void> {
    while (!stopping.signal.aborted) {
      const startedMs = performance.now();
      const wroteBatch = await fillOnce().catch((error: unknown) => {
        logger.warn({ err: error }, "a new environment was not filled; retrying");
        return false;
      });
      const restMs = wroteBatch ? performance.now() - startedMs : lookAgainAfterMs;
      await delay(restMs, undefined, { signal: stopping.signal }).catch(() => undefined);
    }
  }

  const running = run();
  return {
    stop: async () => {
      stopping.abort();
      await running;
    },
  };
}
