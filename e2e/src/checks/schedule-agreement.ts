import {
  deadLetterStream,
  type FlagEvent,
  flagEventsStream,
  scheduleStream,
} from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import type postgres from "postgres";
import { withManager } from "../system/disturbances.ts";
import { readAll } from "./agreement.ts";

/**
 * Guarantees of scheduled changes that must hold when all work has finished. Every change that the scheduler has
 * applied is exactly once in the history and exactly once in the log of events, in the same order and with the same
 * times. No change is in progress. Each check returns descriptions of the violations.
 */

/** Returns the number of messages that wait between scheduler and management, and of all messages so far. */
export async function readQueue(natsUrl: string): Promise<{ waiting: number; passed: number }> {
  return withManager(natsUrl, async (manager) => {
    const { state } = await manager.streams.info(scheduleStream.name);
    // After a crash, the stream can still contain acknowledged messages. So the consumers are counted.
    let waiting = 0;
    for await (const consumer of manager.consumers.list(scheduleStream.name))
      waiting += consumer.num_pending + consumer.num_ack_pending;
    return { waiting, passed: state.last_seq };
  });
}

/** Waits until no change is overdue or in progress, and no message waits. */
export async function awaitSchedulesSettled(
  sql: postgres.Sql,
  natsUrl: string,
  withinMs: number,
): Promise<void> {
  await eventually(
    async () => {
      const [open] = await sql<[{ sent: number; overdue: number }]>`
        select
          count(*) filter (where state = 'sent')::integer as sent,
          count(*) filter (
            where state in ('armed', 'waiting') and due_at <= scheduler.present_time()
          )::integer as overdue
        from scheduler.scheduled_changes`;
      const { waiting } = await readQueue(natsUrl);
      if (open.sent + open.overdue + waiting > 0)
        throw new Error(
          `${open.sent} changes are in progress, ${open.overdue} overdue; ${waiting} messages wait`,
        );
      return true;
    },
    { withinMs, because: "all due changes are done" },
  );
}

/** One change, as the scheduler, the history and the log of events record it. */
type Recorded = { scope: string; text: string };

/** Compares the scheduler's table with the history and the log of events, for all flags. */
export async function faultsOfScheduledChanges(
  sql: postgres.Sql,
  natsUrl: string,
): Promise<string[]> {
  const [applied, entries, events] = await Promise.all([
    readApplied(sql),
    readHistory(sql),
    readScheduledEvents(natsUrl),
  ]);
  const faults: string[] = [];
  const scopes = new Set([...applied, ...entries, ...events].map(({ scope }) => scope));
  for (const scope of scopes) {
    const [changes, history, log] = [applied, entries, events].map((list) =>
      list.flatMap((one) => (one.scope === scope ? [one.text] : [])).join(", "),
    );
    if (history !== changes)
      faults.push(`${scope}: applied was ${changes}, but the history has ${history}`);
    if (log !== changes) faults.push(`${scope}: applied was ${changes}, but the log has ${log}`);
  }
  return [
    ...faults,
    ...(await faultsOfStatuses(sql)),
    ...(await faultsOfVersions(natsUrl)),
    ...(await faultsOfDeadLetters(natsUrl)),
  ];
}

const textOf = (enabled: boolean, at: Date) => `${enabled ? "on" : "off"} at ${at.toISOString()}`;

async function readApplied(sql: postgres.Sql): Promise<Recorded[]> {
  const rows = await sql<{ scope: string; enabled: boolean; at: Date }[]>`
    select flag_id || ' in ' || environment_id as scope, action = 'enable' as enabled,
      applied_at as at
    from scheduler.scheduled_changes
    where state = 'applied'
    -- The schedules of one flag follow one another, and so do the changes of a schedule.
    order by schedule_id, due_at`;
  return rows.map(({ scope, enabled, at }) => ({ scope, text: textOf(enabled, at) }));
}

async function readHistory(sql: postgres.Sql): Promise<Recorded[]> {
  const rows = await sql<{ scope: string; enabled: boolean; at: Date }[]>`
    select flag_id || ' in ' || environment_id as scope,
      (content ->> 'enabled')::boolean as enabled, changed_at as at
    from management.history
    where change_type = 'scheduled'
    order by sequence`;
  return rows.map(({ scope, enabled, at }) => ({ scope, text: textOf(enabled, at) }));
}

async function readScheduledEvents(natsUrl: string): Promise<Recorded[]> {
  return (await readToggles(natsUrl))
    .filter(({ cause }) => cause === "scheduled")
    .map(({ flag, environment, state, timestamp }) => ({
      scope: `${flag.id} in ${environment.id}`,
      text: textOf(state.enabled, new Date(timestamp)),
    }));
}

async function readToggles(natsUrl: string): Promise<FlagEvent[]> {
  const events = (await readAll(natsUrl, flagEventsStream.name)).map(
    ({ payload }) => payload as FlagEvent,
  );
  return events.filter(({ event }) => event === "flag.toggled");
}

/** Checks that no two events switch a flag in the same version. */
async function faultsOfVersions(natsUrl: string): Promise<string[]> {
  const seen = new Set<string>();
  const faults: string[] = [];
  for (const { flag, environment, version } of await readToggles(natsUrl)) {
    const change = `version ${version} of ${flag.id} in ${environment.id}`;
    if (seen.has(change)) faults.push(`two events for ${change}`);
    seen.add(change);
  }
  return faults;
}

/** Checks that each schedule has the status of its last change, and that no change failed. */
async function faultsOfStatuses(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ id: string; status: string; states: string[] }[]>`
    select schedule.id, schedule.status,
      array_agg(change.state order by change.due_at) as states
    from scheduler.schedules as schedule
    join scheduler.scheduled_changes as change on change.schedule_id = schedule.id
    group by schedule.id`;
  return rows.flatMap(({ id, status, states }) => {
    const last = states.at(-1) ?? "";
    const expected = ["waiting", "armed", "sent"].includes(last) ? "pending" : last;
    const faults = status === expected ? [] : [`schedule ${id} of ${states} is ${status}`];
    return states.includes("failed") ? [...faults, `schedule ${id} has failed`] : faults;
  });
}

async function faultsOfDeadLetters(natsUrl: string): Promise<string[]> {
  return withManager(natsUrl, async (manager) => {
    for await (const { config, state } of manager.streams.list())
      if (config.name === deadLetterStream.name && state.messages > 0)
        return [`${state.messages} messages were dead-lettered`];
    return [];
  });
}
