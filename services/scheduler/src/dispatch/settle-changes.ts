import { checkScheduleResolved } from "@halyard/contracts";
import { parseJson, type QueueMessage, type Verdict } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { latenessMs } from "../schedules/schedule.ts";
import { endSchedules } from "../schedules/schedule-store.ts";
import { settle } from "./dispatch-store.ts";
import type { ScheduleMetrics } from "./schedule-metrics.ts";

/**
 * Returns a handler that records the outcomes from management and arms the following change in the same
 * statement. It acknowledges a message afterwards, so a crash in between causes a redelivery.
 */
export function createSettleChanges(options: {
  sql: Sql;
  metrics: ScheduleMetrics;
  /** Called after a waiting change was armed, because that change may already be due. */
  onArmed: () => void;
  logger: Logger;
}): (message: QueueMessage) => Promise<Verdict> {
  const { sql, metrics, onArmed, logger } = options;
  return async ({ payload }) => {
    const checked = checkScheduleResolved(parseJson(payload));
    if (!checked.ok) return { deadLetter: checked.problem };
    const resolved = checked.value;
    const settled = await settle(sql, resolved);
    if (settled !== undefined) {
      const late = latenessMs(settled);
      metrics.settled(resolved.outcome, late === null ? undefined : late / 1_000);
      if (resolved.outcome === "failed")
        logger.error(
          { change_id: resolved.id, reason: resolved.reason },
          "a scheduled change failed",
        );
      if (settled.then === "armed") onArmed();
      if (settled.then !== null) return "done";
    }
    await endSchedules(sql, [resolved.schedule_id]);
    return "done";
  };
}
