import type { Sql } from "@halyard/postgres";
import { isProblem } from "@halyard/service";
import { pause } from "@halyard/timing";
import type { Logger } from "pino";
import { readBacklog } from "./unsent-rows.ts";
import type { Write, Writer } from "./write.ts";

/**
 * Does work that is too large for one transaction, in every management process, one batch at a time. A batch is a
 * write like any other: it waits until the relay has sent its entries and live edges have applied them, for at most
 * 500 ms. Then the process pauses for as long as the batch took, so that the changes of other tenants are published
 * between batches.
 *
 * When a process dies, another one continues.
 */
export type Batches = { stop(): Promise<void> };

/** Polling interval while there is no work, or while it is paused. */
const pollIntervalMs = 500;

/** Unsent rows of the outbox at which work pauses: changes queue already, or NATS is disconnected. */
const unsentRowsAtMost = 1_000;

export function startBatches(options: {
  sql: Sql;
  writer: Writer;
  hasWork: (sql: Sql) => Promise<boolean>;
  /** Writes the next batch. Returns false if no work is left. */
  writeBatch: (write: Write) => Promise<boolean>;
  /** For the log, such as "a new environment was not filled". */
  failure: string;
  logger: Logger;
}): Batches {
  const { sql, writer, hasWork, writeBatch, logger } = options;
  const stopping = new AbortController();

  /** Returns whether it wrote a batch. */
  async function writeOnce(): Promise<boolean> {
    if (!(await hasWork(sql))) return false;
    const { rows } = await readBacklog(sql, unsentRowsAtMost);
    if (rows === unsentRowsAtMost) return false;
    const written = await writer(async (write) => ({ any: await writeBatch(write) }));
    return !isProblem(written) && written.any;
  }

  async function run(): Promise<void> {
    let pauseMs = 0;
    while (await pause(pauseMs, stopping.signal)) {
      const startedMs = performance.now();
      const wroteBatch = await writeOnce().catch((error: unknown) => {
        logger.warn({ err: error }, `${options.failure}; retrying`);
        return false;
      });
      pauseMs = wroteBatch ? performance.now() - startedMs : pollIntervalMs;
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
