import type { Statement as Recorded, Sql } from "@halyard/postgres";
import {
  claimDue,
  listSent,
  msUntilNextDue,
  overdueSeconds,
  settle,
} from "../../../services/scheduler/src/dispatch/dispatch-store.ts";
import {
  endSchedules,
  findLatest,
  listScheduledFlags,
  listSchedules,
} from "../../../services/scheduler/src/schedules/schedule-store.ts";
import type { Bench } from "../benchmark.ts";
import { asDatabase, connectToSchema, explained, genericPlan } from "../system/recording-sql.ts";

/**
 * Times and explains the scheduler's statements, taken from its code. A scheduler is running meanwhile, so
 * each statement runs in a transaction with a batch of due changes, which is rolled back.
 */
export type ProductStatements = {
  /** Milliseconds to claim a full batch, without the commit. */
  timeClaim(): Promise<number>;
  /** Milliseconds of the scan for deleted flags when a scheduler starts. */
  timeWalk(): Promise<number>;
  /** The query plan of each statement. */
  explain(): Promise<readonly Plan[]>;
};

export type Plan = {
  purpose: string;
  text: string;
  /** The generic plan; undefined if PostgreSQL plans the statement each time. */
  genericText: string | undefined;
  /** The plan must use one of these indexes. */
  indexes: readonly string[];
};

/** Number of changes per claim of the dispatcher. */
export const batch = 200;
/** Size of a page of the list, plus one. */
const pageSize = 101;
/** Batch size of the scan at the start. */
const walkPageSize = 1_000;
const nilId = "00000000-0000-0000-0000-000000000000";
/** Sorts before all other ids. */
const firstFlag = { flagId: nilId, environmentId: nilId };

export function openProductStatements(bench: Bench, adminUrl: string): ProductStatements {
  const sql = connectToSchema(adminUrl, "scheduler");
  bench.afterwards(() => sql.end());

  async function planOf({ purpose, indexes, prepare, run }: Statement): Promise<Plan> {
    const recorded: Recorded[] = [];
    return withBatchDue(sql, recorded, async (tx) => {
      const found = await prepare(tx);
      await tx`savepoint before`;
      recorded.length = 0;
      await run(tx, found);
      const statement = recorded.at(-1) as Recorded;
      await tx`rollback to savepoint before`;
      const genericText = await genericPlan(tx, statement);
      const text = await explained(tx, "analyze, buffers, costs off", statement);
      return { purpose, indexes, text, genericText };
    });
  }

  return {
    timeClaim: () =>
      withBatchDue(sql, [], async (tx) => {
        const beganMs = performance.now();
        const claimed = await claimDue(tx, batch);
        const tookMs = performance.now() - beganMs;
        if (claimed.length !== batch) throw new Error(`${claimed.length} changes were claimed`);
        return tookMs;
      }),
    async timeWalk() {
      const beganMs = performance.now();
      let page = await listScheduledFlags(sql, undefined, walkPageSize);
      while (page.length === walkPageSize)
        page = await listScheduledFlags(sql, page.at(-1), walkPageSize);
      return performance.now() - beganMs;
    },
    async explain() {
      const plans: Plan[] = [];
      for (const statement of statements) plans.push(await planOf(statement));
      return plans;
    },
  };
}

type Found = Awaited<ReturnType<typeof findArmed>>;
type Statement = Pick<Plan, "purpose" | "indexes"> & {
  /** Prepares the statement and returns its parameters. */
  prepare: (tx: Sql) => Promise<Found>;
  run: (tx: Sql, found: Found) => Promise<unknown>;
};

const statements: readonly Statement[] = [
  {
    purpose: `claiming ${batch} changes that are due`,
    indexes: ["scheduled_changes_due"],
    prepare: findArmed,
    run: (tx) => claimDue(tx, batch),
  },
  {
    purpose: "when the next change is due",
    indexes: ["scheduled_changes_due"],
    prepare: findArmed,
    run: (tx) => msUntilNextDue(tx),
  },
  {
    purpose: "recording that a change was applied",
    indexes: ["scheduled_changes_of_schedule"],
    prepare: claimed,
    run: (tx, { id, scheduleId }) =>
      settle(tx, {
        id,
        schedule_id: scheduleId,
        outcome: "applied",
        applied_at: new Date().toISOString(),
        reason: null,
      }),
  },
  {
    purpose: "ending a schedule",
    indexes: ["schedules_pkey"],
    prepare: findArmed,
    run: (tx, { scheduleId }) => endSchedules(tx, [scheduleId]),
  },
  {
    purpose: "how long the longest overdue change has been due",
    indexes: ["scheduled_changes_due"],
    prepare: claimed,
    run: (tx) => overdueSeconds(tx),
  },
  {
    purpose: "what is under way",
    indexes: ["scheduled_changes_sent"],
    prepare: claimed,
    run: (tx) => listSent(tx, batch),
  },
  {
    purpose: "a page of the flags with schedules",
    indexes: ["schedules_latest"],
    prepare: findArmed,
    run: (tx) => listScheduledFlags(tx, firstFlag, walkPageSize),
  },
  {
    purpose: "the schedule of a flag",
    indexes: ["schedules_latest"],
    prepare: findArmed,
    run: (tx, place) => findLatest(tx, place),
  },
  {
    purpose: "the list of a project's pending schedules",
    indexes: ["schedules_by_status", "schedules_newest_first"],
    prepare: findArmed,
    run: (tx, { projectId }) =>
      listSchedules(tx, {
        projectId,
        status: "pending",
        flagId: undefined,
        environmentId: undefined,
        beforeId: undefined,
        limit: pageSize,
      }),
  },
  {
    purpose: "the list of an environment's schedules, where it has none",
    indexes: ["schedules_of_environment"],
    prepare: findArmed,
    run: (tx, { projectId }) =>
      listSchedules(tx, {
        projectId,
        status: undefined,
        flagId: undefined,
        environmentId: nilId,
        beforeId: undefined,
        limit: pageSize,
      }),
  },
];

/** Returns an armed change. */
async function findArmed(tx: Sql) {
  const [found] = await tx<
    [{ id: string; scheduleId: string; projectId: string; flagId: string; environmentId: string }]
  >`
    select change.id, schedule_id as "scheduleId", project_id as "projectId",
      change.flag_id as "flagId", change.environment_id as "environmentId"
    from scheduled_changes as change
    join schedules as schedule on schedule.id = schedule_id
    where state = 'armed'
    order by due_at
    limit 1`;
  return found;
}

async function claimed(tx: Sql): Promise<Found> {
  const found = await findArmed(tx);
  await claimDue(tx, batch);
  return found;
}

/**
 * Moves the clock to the time at which the batch is due. Moving the changes instead would write rows, which
 * are slower to read in the same transaction.
 */
async function withBatchDue<T>(
  sql: Sql,
  recorded: Recorded[],
  work: (tx: Sql) => Promise<T>,
): Promise<T> {
  let result: { value: T } | undefined;
  const rolledBack = new Error("as intended");
  try {
    await sql.begin(async (transaction) => {
      await transaction.unprepared(`
        do $do$ begin
          execute format(
            'create or replace function present_time() returns timestamptz language sql volatile as %L',
            format('select timestamptz %L', (
              select due_at from scheduled_changes where state = 'armed'
              order by due_at, id offset ${batch - 1} limit 1
            ))
          );
        end $do$`);
      result = { value: await work(asDatabase(transaction, recorded)) };
      throw rolledBack;
    });
  } catch (error) {
    if (error !== rolledBack) throw error;
  }
  return (result as { value: T }).value;
}
