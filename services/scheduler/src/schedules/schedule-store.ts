import type { ScheduleState } from "@halyard/contracts";
import type { Problem } from "@halyard/http";
import { fragment, json, type Sql, type Transaction } from "@halyard/postgres";
import type { FlagScope } from "../directory/flag-directory.ts";
import type {
  ChangeState,
  Schedule,
  ScheduledChange,
  ScheduleScope,
  ScheduleTimes,
} from "./schedule.ts";

/** The flag and environment that identify a schedule in PostgreSQL. */
type Scope = Pick<ScheduleScope, "flagId" | "environmentId">;

/** Returns the problem if the pending schedule, or none, must not be replaced. */
export type Permit = (pendingId: string | undefined) => Problem | undefined;

/** Returns the database's time, which all replicas of this service use. */
export async function readPresentTime(sql: Sql): Promise<Date> {
  const [row] = await sql<[{ now: Date }]>`select present_time() as now`;
  return row.now;
}

/**
 * Cancels the open schedule of a flag in an environment and inserts the next schedule, if any, in the same
 * transaction. Does nothing if `permit` returns a problem about the id of the open schedule. Does nothing while a change
 * is in progress: the caller waits for its end and retries in another transaction. After a replacement, no change of the
 * previous schedule can happen any more. Returns the cancelled schedule, or null if none was open.
 */
export async function replaceOpen(
  tx: Transaction,
  scope: Scope,
  { next, userId, permit }: { next: Schedule | undefined; userId: string; permit: Permit },
): Promise<{ cancelled: ScheduleTimes | null } | "under way" | Problem> {
  // Without the lock, two concurrent replacements could both find no open schedule and insert one each.
  await tx`
    select pg_advisory_xact_lock(hashtextextended(${`${scope.flagId}.${scope.environmentId}`}, 0))`;
  const open = await tx<{ id: string; state: ChangeState; scheduleId: string }[]>`
    select id, state, schedule_id as "scheduleId"
    from scheduled_changes
    where flag_id = ${scope.flagId} and environment_id = ${scope.environmentId}
      and state in ('waiting', 'armed', 'sent')
    order by due_at
    for update`;
  const problem = permit(open[0]?.scheduleId);
  if (problem !== undefined) return problem;
  if (open.some(({ state }) => state === "sent")) return "under way";
  const cancelled = open.length > 0 ? await cancel(tx, open, userId) : null;
  if (next !== undefined) await insertSchedule(tx, next);
  return { cancelled };
}

async function cancel(
  tx: Transaction,
  open: readonly { id: string; scheduleId: string }[],
  userId: string,
): Promise<ScheduleTimes | null> {
  await tx`
    update scheduled_changes set state = 'cancelled'
    where id = any(${open.map(({ id }) => id)}::uuid[])`;
  // All open changes belong to a single schedule, because each new schedule replaces the previous one.
  const [schedule] = await tx<ScheduleTimes[]>`
    update schedules set status = 'cancelled', finished_at = present_time(), cancelled_by = ${userId}
    where id = any(${open.map(({ scheduleId }) => scheduleId)}::uuid[])
    returning id, enable_at as "enableAt", disable_at as "disableAt"`;
  return schedule ?? null;
}

async function insertSchedule(tx: Transaction, schedule: Schedule): Promise<void> {
  const { flagId, environmentId } = schedule;
  await tx`
    update schedules set latest = false
    where flag_id = ${flagId} and environment_id = ${environmentId} and latest`;
  await tx`
    insert into schedules (id, organization_id, project_id, environment_id, flag_id, enable_at,
      disable_at, status, latest, created_at, created_by)
    values (${schedule.id}, ${schedule.organizationId}, ${schedule.projectId}, ${environmentId},
      ${flagId}, ${schedule.enableAt}, ${schedule.disableAt}, ${schedule.status}, true,
      ${schedule.createdAt}, ${schedule.createdBy})`;
  await tx`
    insert into scheduled_changes (id, schedule_id, flag_id, environment_id, action, due_at, state)
    select id, ${schedule.id}, ${flagId}, ${environmentId}, action, "dueAt", state
    from jsonb_to_recordset(${json(schedule.changes)}) as change (
      id uuid, action text, "dueAt" timestamptz, state text)`;
}

/** Returns the schedule that was set last for a flag in an environment, even if it has ended. */
export async function findLatest(sql: Sql, scope: Scope): Promise<Schedule | undefined> {
  const [schedule] = await sql<Schedule[]>`
    select ${columns}
    from schedules as schedule
    where flag_id = ${scope.flagId} and environment_id = ${scope.environmentId} and latest`;
  return schedule && revived(schedule);
}

/** Returns schedules of a project that are older than `beforeId`, newest first. */
export async function listSchedules(
  sql: Sql,
  query: {
    projectId: string;
    status: ScheduleState | undefined;
    flagId: string | undefined;
    environmentId: string | undefined;
    beforeId: string | undefined;
    limit: number;
  },
): Promise<Schedule[]> {
  const { status, flagId, environmentId, beforeId } = query;
  const schedules = await sql<Schedule[]>`
    select ${columns}
    from schedules as schedule
    where project_id = ${query.projectId}
      ${status === undefined ? fragment`` : fragment`and status = ${status}`}
      ${flagId === undefined ? fragment`` : fragment`and flag_id = ${flagId}`}
      ${environmentId === undefined ? fragment`` : fragment`and environment_id = ${environmentId}`}
      ${beforeId === undefined ? fragment`` : fragment`and id < ${beforeId}`}
    order by id desc
    limit ${query.limit}`;
  return schedules.map(revived);
}

const columns = fragment`
  id, organization_id as "organizationId", project_id as "projectId",
  environment_id as "environmentId", flag_id as "flagId", enable_at as "enableAt",
  disable_at as "disableAt", status, created_at as "createdAt", created_by as "createdBy",
  case status when 'cancelled' then finished_at end as "cancelledAt", cancelled_by as "cancelledBy",
  (
    select jsonb_agg(jsonb_build_object('id', change.id, 'action', action, 'dueAt', due_at,
      'state', state, 'appliedAt', applied_at) order by due_at)
    from scheduled_changes as change
    where change.schedule_id = schedule.id
  ) as changes`;

/** Converts the times of the changes: PostgreSQL returns times within JSON as text. */
function revived(row: Schedule): Schedule {
  const changes = row.changes.map(
    (change): ScheduledChange => ({
      ...change,
      dueAt: new Date(change.dueAt),
      appliedAt: change.appliedAt === null ? null : new Date(change.appliedAt),
    }),
  );
  return { ...row, changes };
}

/**
 * Ends the given schedules that have no open change. Each schedule gets the state of its last change. This is
 * a separate statement after the one that ended a change. A statement that waits for a lock does not see the
 * other rows that the lock's holder has committed, but the next statement does.
 */
export async function endSchedules(
  sql: Sql | Transaction,
  scheduleIds: readonly string[],
): Promise<void> {
  await sql`
    update schedules as schedule
    set status = last_change.state, finished_at = present_time()
    from unnest(${[...scheduleIds]}::uuid[]) as asked (id)
    cross join lateral (
      select change.state
      from scheduled_changes as change
      where change.schedule_id = asked.id
      order by change.due_at desc
      limit 1
    ) as last_change
    where schedule.id = asked.id and schedule.status = 'pending'
      and not exists (
        select from scheduled_changes as change
        where change.schedule_id = asked.id and change.state in ('waiting', 'armed', 'sent')
      )`;
}

/**
 * Cancels the schedules of deleted flags. Changes that were not sent are cancelled. A change in progress ends
 * by itself, because management does not find the flag. Every replica receives each deletion and runs these
 * statements, so they lock rows in one order to avoid deadlocks.
 */
export async function cancelOfFlags(sql: Sql, scopes: readonly FlagScope[]): Promise<void> {
  const flagIds = scopes.map(({ flagId }) => flagId);
  const environmentIds = scopes.map(({ environmentId }) => environmentId);
  await sql.begin(async (tx) => {
    const open = await tx<{ id: string; scheduleId: string }[]>`
      select change.id, change.schedule_id as "scheduleId"
      from scheduled_changes as change
      join unnest(${flagIds}::uuid[], ${environmentIds}::uuid[]) as scope (flag_id, environment_id)
        using (flag_id, environment_id)
      where change.state in ('waiting', 'armed')
      order by change.flag_id, change.environment_id, change.due_at
      for update of change`;
    await tx`
      update scheduled_changes set state = 'cancelled'
      where id = any(${open.map(({ id }) => id)}::uuid[])`;
    const latest = await tx<{ id: string }[]>`
      select schedule.id
      from schedules as schedule
      join unnest(${flagIds}::uuid[], ${environmentIds}::uuid[]) as scope (flag_id, environment_id)
        using (flag_id, environment_id)
      where schedule.latest
      order by schedule.flag_id, schedule.environment_id
      for update of schedule`;
    // The schedule of a deleted flag cannot be read any more, so the clean-up may delete it.
    await tx`
      update schedules set latest = false where id = any(${latest.map(({ id }) => id)}::uuid[])`;
    await endSchedules(tx, [...new Set(open.map(({ scheduleId }) => scheduleId))]);
  });
}

/**
 * Deletes a batch of schedules of these environments, with their changes. Returns the number. A schedule with a sent
 * change stays until a later sweep: the change first returns as cancelled, because management does not find the flag.
 */
export async function deleteSchedulesOf(
  sql: Sql,
  environmentIds: readonly string[],
  atMost: number,
): Promise<number> {
  const deleted = await sql`
    delete from schedules
    where id = any(array(
      select schedule.id from schedules as schedule
      where schedule.environment_id = any(${environmentIds as string[]}::uuid[])
        and not exists (
          select from scheduled_changes as change
          where change.schedule_id = schedule.id and change.state = 'sent'
        )
      limit ${atMost}
    ))`;
  return deleted.count;
}
