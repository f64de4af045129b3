import { isProblem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { pause } from "@halyard/timing";
import type { Logger } from "pino";
import { readBacklog } from "./unsent-rows.ts";
import type { Write, Writer } from "./write.ts";

/**
 * Performs work that is too large for one transaction, in every management process, one batch at a time. A batch is a
 * write like any other. It waits up to 500 ms until the relay has published its entries and live edges have applied
 * them. Then the process pauses for as long as the batch took, so that changes of other tenants are published between
 * batches.
 *
 * If a process dies, another one continues.
 */
export type Batches = { stop(): Promise<void> };

/** Polling interval while there is no work, or while the outbox has a backlog. */
const pollIntervalMs = 500;

/**
 * Number of unsent snapshot rows at which the work pauses: changes are already queuing, or NATS is disconnected. Events
 * are not counted, because those of an organization can wait for webhook dispatchers, which must not stop the work of
 * other organizations.
 */
const maxUnsentRows = 1_000;

export function startBatches(options: {
  sql: Sql;
  writer: Writer;
  hasWork: (sql: Sql) => Promise<boolean>;
  /** Writes the next batch. Returns false if no work is left. */
  writeBatch: (write: Write) => Promise<boolean>;
  /** Log message for a failed batch, such as "a new environment was not filled". */
  failure: string;
  logger: Logger;
}): Batches {
  const { sql, writer, hasWork, writeBatch, logger } = options;
  const stopping = new AbortController();

  /** Returns whether a batch was written. */
  async function writeOnce(): Promise<boolean> {
    if (!(await hasWork(sql))) return false;
    const { rows } = await readBacklog(sql, {
      streams: ["snapshot"],
      countUpTo: maxUnsentRows,
    });
    if (rows === maxUnsentRows) return false;
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
