import { isProblem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { Logger } from "pino";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Writer } from "../outbox/write.ts";
import { applyDue } from "./apply-request.ts";
import { findDue } from "./request-store.ts";

/** Time between two searches for approved requests whose `apply_at` has come. */
const intervalMs = 1_000;

/** Maximum number of requests per search. */
const atOnce = 20;

type Options = TimeAndIds & { sql: Sql; writer: Writer; logger: Logger };

/**
 * Applies approved requests at their time, in the process that leads. A former leader does no harm: the transaction that
 * applies a request locks it, and records that it is applied. A request that cannot be applied becomes stale or open, so it is not tried again.
 */
export function startApplying(options: Options & { isLeading: () => boolean }): {
  stop(): Promise<void>;
} {
  const { logger, isLeading } = options;
  return startInterval(
    async (signal) => {
      if (isLeading()) await applyDueRequests(options, () => !signal.aborted);
    },
    {
      intervalMs,
      isExpected: () => true,
      onFailure: (err) => logger.warn({ err }, "due change requests were not applied; retrying"),
    },
  );
}

export async function applyDueRequests(
  { sql, writer, now, newId, logger }: Options,
  mayContinue: () => boolean = () => true,
): Promise<void> {
  for (const id of await findDue(sql, now(), atOnce)) {
    if (!mayContinue()) return;
    try {
      const done = await applyDue(writer, { now, newId }, id);
      if (isProblem(done))
        logger.warn(
          { changeRequest: id, reason: done.message },
          "a change request was not applied",
        );
    } catch (err) {
      // The others must not wait for it.
      logger.error({ changeRequest: id, err }, "a change request was not applied; retrying");
    }
  }
}
