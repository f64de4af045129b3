import { checkScheduleResolved, type ScheduleResolved } from "@halyard/contracts";
import { parseJson, type QueueMessage, type Verdict } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import type { Logger } from "pino";
import { latenessMs } from "../schedules/schedule.ts";
import { endSchedules } from "../schedules/schedule-store.ts";
import { type Settled, settle } from "./dispatch-store.ts";
import type { ScheduleMetrics } from "./schedule-metrics.ts";

type Parts = {
  sql: Sql;
  metrics: ScheduleMetrics;
  /** Called after a waiting change was armed, because that change may already be due. */
  onArmed: () => void;
  logger: Logger;
};

/**
 * Returns a handler that records the outcomes from management and arms the following changes in the same
 * statement. It acknowledges a message afterwards, so a crash in between causes a redelivery.
 */
export function createSettleChanges(parts: Parts): (message: QueueMessage) => Promise<Verdict> {
  const settleInGroups = groupOutcomes((resolved) => settle(parts.sql, resolved));
  return async ({ payload }) => {
    const checked = checkScheduleResolved(parseJson(payload));
    if (!checked.ok) return { deadLetter: checked.problem };
    const resolved = checked.value;
    const settled = await settleInGroups(resolved);
    if (settled !== undefined) report(parts, resolved, settled);
    if (settled?.effect == null) await endSchedules(parts.sql, [resolved.schedule_id]);
    return "done";
  };
}

function report({ metrics, onArmed, logger }: Parts, resolved: ScheduleResolved, settled: Settled) {
  const late = latenessMs(settled);
  metrics.settled(resolved.outcome, late === null ? undefined : late / 1_000);
  if (resolved.outcome === "failed")
    logger.error({ change_id: resolved.id, reason: resolved.reason }, "a scheduled change failed");
  if (settled.effect === "armed") onArmed();
}

type Waiting = {
  resolved: ScheduleResolved;
  resolve: (settled: Settled | undefined) => void;
  reject: (error: unknown) => void;
};

/**
 * Returns a function that records outcomes in groups, because a commit waits for the disk. Those that arrive while a
 * group is being recorded are the next one. It returns undefined for an outcome that was recorded before.
 */
export function groupOutcomes(
  record: (resolved: readonly ScheduleResolved[]) => Promise<readonly Settled[]>,
): (resolved: ScheduleResolved) => Promise<Settled | undefined> {
  const waiting: Waiting[] = [];
  let isRecording = false;

  async function recordGroup(group: readonly Waiting[]): Promise<void> {
    try {
      const settled = await record(group.map(({ resolved }) => resolved));
      const byId = new Map(settled.map((each) => [each.id, each]));
      for (const { resolved, resolve } of group) {
        resolve(byId.get(resolved.id));
        // Only the first of two equal messages has recorded it.
        byId.delete(resolved.id);
      }
    } catch (error) {
      if (group.length === 1 || isOutage(error)) for (const { reject } of group) reject(error);
      // One of them may be at fault, and must not fail with the others.
      else for (const one of group) await recordGroup([one]);
    }
  }

  async function recordGroups(): Promise<void> {
    isRecording = true;
    while (waiting.length > 0) await recordGroup(waiting.splice(0));
    isRecording = false;
  }

  return (resolved) => {
    const { promise, resolve, reject } = Promise.withResolvers<Settled | undefined>();
    waiting.push({ resolved, resolve, reject });
    if (!isRecording) void recordGroups();
    return promise;
  };
}
