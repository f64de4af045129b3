import { scheduleStream } from "@halyard/contracts";
import { type Called, call, eventually } from "@halyard/testing";
import type postgres from "postgres";
import {
  awaitEdgesAgree,
  awaitSettled,
  awaitSnapshot,
  faultsOfLog,
  faultsOfSnapshot,
} from "../checks/agreement.ts";
import { awaitSchedulesSettled, faultsOfScheduledChanges } from "../checks/schedule-agreement.ts";
import { forgetMessageIdsAtOnce } from "../system/disturbances.ts";
import type { Edge, System } from "../system/system.ts";
import { createTenant, must, type Tenant } from "../system/tenancy.ts";
import { type CreatedFlag, createFlags } from "../traffic/changes.ts";
import { recordValues, type SeenValues } from "../traffic/seen-values.ts";

/**
 * One scenario of scheduled changes in a running system: a tenant with flags that are off, and schedules that become
 * due during a fault. At the end, the scenario checks that each change was made exactly once, in order, and equally in
 * all places.
 *
 * The broker expires message ids almost immediately, so that every repetition reaches its consumer. A change that is
 * applied twice is only visible if the flag differs in between. Tests therefore switch flags by hand before they let a
 * repetition through.
 */
export type ScheduleStory = {
  tenant: Tenant;
  flags: readonly CreatedFlag[];
  /** Schedules changes relative to the present time of the schedulers' clock. Returns that present time. */
  schedule(flag: CreatedFlag, times: { enableInMs?: number; disableInMs?: number }): Promise<Date>;
  /** Sends a request to clear the schedule, by default to the first scheduler. Returns the status. */
  clear(flag: CreatedFlag, at?: { url: string }): Promise<number>;
  switchByHand(flag: CreatedFlag, enabled: boolean): Promise<void>;
  remove(flag: CreatedFlag): Promise<void>;
  /** Rolls the flag back. Returns the response body. */
  rollBack(flag: CreatedFlag): Promise<Called["body"]>;
  /** Returns the states of the latest schedule's changes, as the scheduler stores them. */
  states(flag: CreatedFlag): Promise<string[]>;
  /** Returns the id of the latest schedule's change that is armed or sent. */
  openChange(flag: CreatedFlag): Promise<string>;
  /** Waits until all changes of the latest schedule are applied. */
  applied(flag: CreatedFlag): Promise<void>;
  /** Returns the values that scheduled changes have given the flag so far, in order. */
  made(flag: CreatedFlag): Promise<boolean[]>;
  /** Sets the values that scheduled changes must have made in the end, if they are not all that were scheduled. */
  expectMade(flag: CreatedFlag, values: readonly boolean[]): void;
  /** Waits until all work has finished. Returns descriptions of everything that violates a guarantee. */
  faults(options?: { withinMs?: number }): Promise<string[]>;
};

/** A change that was not sent, or whose outcome was lost, is sent again after 30 seconds. */
const defaultSettleWithinMs = 60_000;

export async function beginScheduleStory(
  system: System,
  options: { name: string; flags?: number },
): Promise<ScheduleStory> {
  const { sql, nats, edges } = system;
  const management = () => first(system.managements).url;
  const tenant = await createTenant(management(), { name: options.name });
  const keys = Array.from({ length: options.flags ?? 1 }, (_, index) => `flag-${index}`);
  const flags = await createFlags(management(), tenant.serverKey, keys);
  const environment = { environmentId: tenant.environmentId, key: tenant.clientKey };
  await awaitEdgesAgree({ sql, edges, ...environment });
  // The first process that needs the stream creates it, possibly after all processes are ready.
  await eventually(async () => {
    await forgetMessageIdsAtOnce(nats.url, scheduleStream.name);
    return true;
  });
  const seen = recordValues(edges, tenant.clientKey);
  system.endsWithSystem(seen.stop);
  const expected = new Map<CreatedFlag, readonly boolean[]>(flags.map((flag) => [flag, []]));

  const key = tenant.serverKey;
  const scheduleAt = (url: string, flag: CreatedFlag) =>
    `${url}/api/v1/flags/${flag.id}/environments/${tenant.environmentId}/schedule`;
  const expectMade = (flag: CreatedFlag, values: readonly boolean[]) =>
    void expected.set(flag, values);
  const latest = (flag: CreatedFlag) => sql<{ id: string; state: string }[]>`
    select change.id, change.state
    from scheduler.scheduled_changes as change
    where change.schedule_id = (
      select id from scheduler.schedules where flag_id = ${flag.id} order by id desc limit 1
    )
    order by change.due_at`;
  const states = async (flag: CreatedFlag) => (await latest(flag)).map(({ state }) => state);

  return {
    tenant,
    flags,
    expectMade,
    states,
    async schedule(flag, { enableInMs, disableInMs }) {
      // On a busy machine, the times may have passed before they arrive.
      const present = await eventually(async () => {
        const now = await presentTime(sql);
        const at = (ms?: number) => (ms === undefined ? null : new Date(now.getTime() + ms));
        const body = { enable_at: at(enableInMs), disable_at: at(disableInMs) };
        await must(scheduleAt(first(system.schedulers).url, flag), { method: "POST", key, body });
        return now;
      });
      const inOrder = [
        { value: true, ms: enableInMs },
        { value: false, ms: disableInMs },
      ]
        .filter((time): time is { value: boolean; ms: number } => time.ms !== undefined)
        .sort((one, other) => one.ms - other.ms);
      expectMade(flag, [...(expected.get(flag) ?? []), ...inOrder.map(({ value }) => value)]);
      return present;
    },
    clear: async (flag, at = first(system.schedulers)) =>
      (await call(scheduleAt(at.url, flag), { method: "DELETE", key })).status,
    async switchByHand(flag, enabled) {
      const url = `${management()}/api/v1/flags/${flag.id}`;
      await must(url, { method: "PATCH", key, body: { enabled } });
    },
    remove: (flag) =>
      awaitedLater(must(`${management()}/api/v1/flags/${flag.id}`, { method: "DELETE", key })),
    rollBack: (flag) => {
      const path = `flags/${flag.id}/environments/${tenant.environmentId}/rollback`;
      return awaitedLater(must(`${management()}/api/v1/${path}`, { method: "POST", key }));
    },
    async openChange(flag) {
      const open = (await latest(flag)).find(({ state }) => ["armed", "sent"].includes(state));
      if (open === undefined) throw new Error(`${flag.key} has no open change`);
      return open.id;
    },
    async applied(flag) {
      await eventually(async () => (await states(flag)).every((state) => state === "applied"), {
        withinMs: defaultSettleWithinMs,
        because: `the schedule of ${flag.key} is applied`,
      });
    },
    made: (flag) => readMade(sql, flag),
    async faults({ withinMs = defaultSettleWithinMs } = {}) {
      await awaitSchedulesSettled(sql, nats.url, withinMs);
      await awaitSettled(sql, withinMs);
      await awaitSnapshot(nats.url);
      await awaitEdgesAgree({ sql, edges, ...environment });
      await seen.stop();
      return [
        ...(await faultsOfScheduledChanges(sql, nats.url)),
        ...(await faultsOfExpectations(sql, expected)),
        ...(await faultsOfSeen(sql, { flags, edges, seen })),
        ...(await faultsOfSnapshot(sql, nats.url)),
        ...(await faultsOfLog(sql, nats.url)),
      ];
    },
  };
}

/** Prevents an unhandled rejection. The caller that awaits the response still receives it; a failed test never does. */
function awaitedLater<T>(answer: Promise<T>): Promise<T> {
  answer.catch(() => undefined);
  return answer;
}

function first<T>(those: readonly T[]): T {
  const [one] = those;
  if (one === undefined) throw new Error("no process is in service");
  return one;
}

async function readMade(sql: System["sql"], flag: CreatedFlag): Promise<boolean[]> {
  const rows = await sql<{ enabled: boolean }[]>`
    select (content ->> 'enabled')::boolean as enabled from management.history
    where flag_id = ${flag.id} and change_type = 'scheduled'
    order by sequence`;
  return rows.map(({ enabled }) => enabled);
}

async function faultsOfExpectations(
  sql: System["sql"],
  expected: ReadonlyMap<CreatedFlag, readonly boolean[]>,
): Promise<string[]> {
  const faults: string[] = [];
  for (const [flag, values] of expected) {
    const made = await readMade(sql, flag);
    if (made.join() !== values.join())
      faults.push(`${flag.key} was made [${made}] instead of [${values}]`);
  }
  return faults;
}

/** Checks that the values sent by each edge are a subsequence of the flag's history. */
async function faultsOfSeen(
  sql: System["sql"],
  story: { flags: readonly CreatedFlag[]; edges: readonly Edge[]; seen: SeenValues },
): Promise<string[]> {
  const faults: string[] = [];
  for (const { id, key } of story.flags) {
    const history = await sql<{ enabled: boolean }[]>`
      select (content ->> 'enabled')::boolean as enabled from management.history
      where flag_id = ${id} order by sequence`;
    const was = history.map(({ enabled }) => enabled);
    for (const edge of story.edges) {
      const sent = story.seen.of(edge, key);
      if (!isPartOf(sent, was))
        faults.push(`${edge.name} sent ${key} as [${sent}], but it was [${was}]`);
    }
  }
  return faults;
}

function isPartOf(part: readonly boolean[], whole: readonly boolean[]): boolean {
  let from = 0;
  return part.every((value) => {
    const found = whole.indexOf(value, from);
    from = found + 1;
    return found >= 0;
  });
}

/** Returns the present time of the schedulers' only clock, which is that of the database. A test may set it. */
export async function presentTime(sql: postgres.Sql): Promise<Date> {
  const [row] = await sql<[{ now: Date }]>`select scheduler.present_time() as now`;
  return row.now;
}
