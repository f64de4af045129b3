import { writeAudit } from "@halyard/audit-outbox";
import type { SetSchedule } from "@halyard/contracts";
import { type Answer, createProblem, isProblem, type Problem } from "@halyard/http";
import { rollBackOnProblem } from "@halyard/idempotency";
import type { Sql, Transaction } from "@halyard/postgres";
import { backoffMs, pause } from "@halyard/timing";
import {
  type Author,
  decideSchedule,
  type Schedule,
  type ScheduleScope,
  scheduleAudit,
} from "./schedule.ts";
import { type Permit, readPresentTime, replaceOpen } from "./schedule-store.ts";

/**
 * Sets and clears schedules on behalf of users. Each operation returns only when no change of the previous
 * schedule can happen any more.
 */
export type ScheduleChanges = {
  /**
   * Sets a schedule. `answering` runs in the transaction of the change and calls `make`. It can write rows in
   * that transaction, or return a stored answer without making the change. Therefore `make` reports all
   * problems, even that the flag does not exist.
   */
  set(
    scope: ScheduleScope | Problem,
    requested: { author: Author; request: SetSchedule; permit: Permit },
    answering: (
      tx: Transaction,
      make: () => Promise<Schedule | Problem>,
    ) => Promise<Answer | Problem>,
  ): Promise<Answer | Problem>;
  clear(
    scope: ScheduleScope,
    requested: { author: Author; permit: Permit },
  ): Promise<"cleared" | Problem>;
};

/** Maximum wait for a change that is in progress. A healthy system takes milliseconds. */
const underWayTimeoutMs = 5_000;
/** The delay grows because every attempt takes a connection, which the change needs too. */
const backoff = { firstMs: 20, maxMs: 250 };
/** Maximum number of waiting requests. More would take the connections that the changes in progress need. */
const maxWaiting = 50;

const stillUnderWay = createProblem(
  "SERVER_002",
  "A change of this schedule is in progress. This request changed nothing; retry after 1 s.",
  { "retry-after": "1" },
);

export function createScheduleChanges(options: {
  sql: Sql;
  /** Returns a UUID of version 7 for a time. The database's clock orders schedules, not this process's. */
  newId: (at: Date) => string;
  /** Returns monotonic milliseconds. */
  monotonicMs: () => number;
  onSet: (scope: ScheduleScope) => void;
}): ScheduleChanges {
  const { sql, newId, onSet } = options;
  const whenNothingIsUnderWay = createWait(options);

  return {
    async set(scope, { author, request, permit }, answering) {
      const { userId } = author;
      const now = await readPresentTime(sql);
      const schedule = isProblem(scope)
        ? scope
        : decideSchedule(scope, request, { userId, now, newId: () => newId(now) });
      const answered = await whenNothingIsUnderWay((tx) =>
        answering(tx, async () => {
          if (isProblem(schedule)) return schedule;
          const replaced = await replaceOpen(tx, schedule, { next: schedule, userId, permit });
          if (replaced === "under way") return stillUnderWay;
          if (isProblem(replaced)) return replaced;
          const change = { before: replaced.cancelled, after: schedule };
          await writeAudit(
            tx,
            scheduleAudit(schedule, change, { author, id: newId(now), at: now }),
          );
          return schedule;
        }),
      );
      if (!isProblem(answered) && !isProblem(schedule)) onSet(schedule);
      return answered;
    },

    async clear(scope, { author, permit }) {
      const { userId } = author;
      const now = await readPresentTime(sql);
      const done = await whenNothingIsUnderWay(async (tx) => {
        const replaced = await replaceOpen(tx, scope, { next: undefined, userId, permit });
        if (replaced === "under way") return stillUnderWay;
        if (isProblem(replaced)) return replaced;
        const change = { before: replaced.cancelled, after: null };
        if (change.before !== null)
          await writeAudit(tx, scheduleAudit(scope, change, { author, id: newId(now), at: now }));
        return { cleared: true };
      });
      return isProblem(done) ? done : "cleared";
    },
  };
}

/**
 * Returns a function that runs work in a transaction and rolls back on a problem. While a change of the schedule
 * is in progress, the function repeats the work for a bounded time.
 */
function createWait({ sql, monotonicMs }: { sql: Sql; monotonicMs: () => number }) {
  let waiting = 0;

  return async <T extends object>(
    work: (tx: Transaction) => Promise<T | Problem>,
  ): Promise<T | Problem> => {
    let done = await rollBackOnProblem(sql, work);
    if (done !== stillUnderWay || waiting >= maxWaiting) return done;
    const deadlineMs = monotonicMs() + underWayTimeoutMs;
    waiting += 1;
    try {
      for (let attempts = 1; done === stillUnderWay && monotonicMs() < deadlineMs; attempts += 1) {
        await pause(backoffMs(backoff, attempts));
        done = await rollBackOnProblem(sql, work);
      }
      return done;
    } finally {
      waiting -= 1;
    }
  };
}
