import {
  type AudienceEvent,
  checkAudienceEvent,
  checkFlagEvent,
  completeKey,
  type FlagEvent,
  flagEventsStream,
  snapshotBucket,
} from "@halyard/contracts";
import { call, eventually } from "@halyard/testing";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import type postgres from "postgres";
import type { Edge } from "../system/system.ts";
import type { Acknowledged } from "../traffic/changes.ts";

/**
 * Guarantees that must hold when all work has finished, whatever happened before. PostgreSQL is the source of truth.
 * The snapshot and every edge agree with it. The log of events contains every change exactly once, in order. Everything
 * that was acknowledged is part of it. Each check returns descriptions of the violations.
 */
type Stored = { subject: string; sequence: number; payload: unknown };

/** Waits until the outbox has no unsent rows. */
export async function awaitSettled(sql: postgres.Sql, withinMs = 15_000): Promise<void> {
  await eventually(
    async () => {
      const [row] = await sql`select count(*)::integer as unsent from outbox where sent_at is null`;
      return row?.unsent === 0;
    },
    { withinMs, because: "everything in the outbox is published" },
  );
}

/**
 * Waits until the snapshot is complete. Rows of the outbox are published while it is rebuilt, so an empty outbox
 * does not show that a rebuild has ended.
 */
export async function awaitSnapshot(natsUrl: string): Promise<void> {
  const subject = snapshotBucket.subjectPrefix + completeKey;
  await eventually(
    async () => {
      const entries = await readAll(natsUrl, snapshotBucket.streamName);
      const complete = entries.find((entry) => entry.subject === subject)?.payload;
      return complete !== undefined && !("rebuilding" in (complete as object));
    },
    { because: "the snapshot is complete" },
  );
}

/** Waits until every edge serves the values that PostgreSQL contains for the key's environment. */
export async function awaitEdgesAgree(options: {
  sql: postgres.Sql;
  edges: readonly Edge[];
  environmentId: string;
  key: string;
}): Promise<void> {
  const truth = await options.sql<{ key: string; enabled: boolean }[]>`
    select flag.key, state.content -> 'enabled' as enabled
    from flag_states as state join flags as flag on flag.id = state.flag_id
    where state.environment_id = ${options.environmentId}`;
  const expected = Object.fromEntries(truth.map(({ key, enabled }) => [key, enabled]));
  for (const edge of options.edges)
    await eventually(
      async () => {
        const { status, body } = await call(`${edge.url}/api/v1/sdk/flags`, { key: options.key });
        if (status !== 200) throw new Error(`${edge.name} returns ${status}`);
        const differing = differences(body.flags, expected);
        if (differing.length > 0)
          throw new Error(`${edge.name} disagrees: ${differing.slice(0, 10).join(", ")}`);
        return true;
      },
      { because: `${edge.name} agrees with PostgreSQL` },
    );
}

function differences(got: Record<string, unknown>, expected: Record<string, unknown>): string[] {
  const keys = new Set([...Object.keys(got), ...Object.keys(expected)]);
  return [...keys]
    .filter((key) => got[key] !== expected[key])
    .map((key) => `${key} is ${got[key]} instead of ${expected[key]}`);
}

/** Compares the snapshot, from which the next edge starts, with the database. */
export async function faultsOfSnapshot(sql: postgres.Sql, natsUrl: string): Promise<string[]> {
  const entries = await readAll(natsUrl, snapshotBucket.streamName);
  const held = new Map(
    entries.map(({ subject, payload }) => [
      subject.slice(snapshotBucket.subjectPrefix.length),
      payload as { deleted?: true; version: number; enabled: boolean },
    ]),
  );
  const states = await sql<{ entry: string; version: number; enabled: boolean }[]>`
    select project.organization_id || '.flag.' || state.environment_id || '.' || flag.id as entry,
           state.version::integer as version, state.content -> 'enabled' as enabled
    from flag_states as state
    join flags as flag on flag.id = state.flag_id
    join projects as project on project.id = flag.project_id`;
  const faults: string[] = [];
  for (const { entry, version, enabled } of states) {
    const found = held.get(entry);
    if (found === undefined) faults.push(`the snapshot lacks ${entry}`);
    else if (found.version !== version || found.enabled !== enabled)
      faults.push(
        `the snapshot holds ${entry} as version ${found.version}, ${found.enabled} ` +
          `instead of version ${version}, ${enabled}`,
      );
  }
  const living = new Set(states.map(({ entry }) => entry));
  for (const [entry, value] of held)
    if (entry.includes(".flag.") && !living.has(entry) && value.deleted !== true)
      faults.push(`the snapshot holds ${entry}, which was deleted`);
  if (!held.has("complete")) faults.push("the snapshot is not complete");
  return faults;
}

/** Compares the log of events with the outbox, to which every change adds a row. */
export async function faultsOfLog(sql: postgres.Sql, natsUrl: string): Promise<string[]> {
  const stored = await readAll(natsUrl, flagEventsStream.name);
  const faults: string[] = [];
  const sequencesById = new Map<string, number[]>();
  const lastOfFlag = new Map<string, FlagEvent>();
  for (const { payload, sequence, subject } of stored) {
    const check = subject === audienceEventName ? checkAudienceEvent : checkFlagEvent;
    const checked = check(payload);
    if (!checked.ok) {
      faults.push(`the event at ${sequence} does not fit its schema: ${checked.problem}`);
      continue;
    }
    const event = checked.value;
    sequencesById.set(event.id, [...(sequencesById.get(event.id) ?? []), sequence]);
    if (event.event !== subject) faults.push(`${event.event} has the subject ${subject}`);
    if (event.event === audienceEventName) continue;
    const before = lastOfFlag.get(event.flag.id);
    if (before !== undefined && !follows(event, before))
      faults.push(`at ${sequence}: version ${event.version} after ${before.version}`);
    lastOfFlag.set(event.flag.id, event);
  }
  for (const [id, sequences] of sequencesById)
    if (sequences.length > 1) faults.push(`the event ${id} is at ${sequences.join(" and ")}`);

  const written = await sql<{ id: string; sequence: number | null }[]>`
    select message_id::text as id, stream_sequence::integer as sequence
    from outbox where stream = 'events'`;
  for (const { id, sequence } of written) {
    const sequences = sequencesById.get(id);
    if (sequences === undefined) faults.push(`the event ${id} is not in the log`);
    else if (!sequences.includes(sequence ?? -1))
      faults.push(`the event ${id} is at ${sequences}, but ${sequence} is recorded`);
  }
  if (sequencesById.size !== written.length)
    faults.push(`the log holds ${sequencesById.size} events, the outbox ${written.length}`);
  return faults;
}

const audienceEventName: AudienceEvent["event"] = "audience.updated";

function follows(event: FlagEvent, before: FlagEvent): boolean {
  if (event.timestamp <= before.timestamp) return false;
  // One change may publish two events with the same version.
  return event.version === before.version || event.version === before.version + 1;
}

/** Checks that every acknowledged change is in the log, with the value of the response. */
export async function faultsOfAnswers(
  natsUrl: string,
  acknowledged: readonly Acknowledged[],
  deleted: readonly string[],
): Promise<string[]> {
  const events = (await readAll(natsUrl, flagEventsStream.name)).map(
    ({ payload }) => payload as FlagEvent,
  );
  const logged = new Map(events.map((event) => [`${event.flag.id} ${event.version}`, event]));
  const gone = new Set(
    events.filter(({ event }) => event === "flag.deleted").map(({ flag }) => flag.id),
  );
  const faults: string[] = [];
  for (const { flagId, version, enabled } of acknowledged) {
    const event = logged.get(`${flagId} ${version}`);
    if (event === undefined) faults.push(`no event for version ${version} of ${flagId}`);
    else if (event.state.enabled !== enabled)
      faults.push(`version ${version} of ${flagId} was acknowledged as ${enabled}, but is not`);
  }
  for (const flagId of deleted)
    if (!gone.has(flagId)) faults.push(`no event for the deletion of ${flagId}`);
  return faults;
}

/**
 * Reads all messages of a stream in order, over a new connection. A message that is replaced meanwhile has a higher
 * sequence. The broker's count of pending messages is not used, because it can stay above zero for ever.
 */
export async function readAll(
  natsUrl: string,
  stream: string,
  login: { user: string; pass: string } | undefined = undefined,
): Promise<Stored[]> {
  const connection = await connect({ servers: natsUrl, ...login });
  try {
    const manager = await jetstreamManager(connection);
    const { state } = await manager.streams.info(stream);
    const stored: Stored[] = [];
    for (let sequence = state.first_seq; sequence <= state.last_seq; sequence += 1) {
      const next = { seq: sequence, next_by_subj: ">" };
      const message = await manager.streams.getMessage(stream, next);
      if (message === null) break;
      sequence = message.seq;
      stored.push({ subject: message.subject, sequence, payload: message.json() });
    }
    return stored;
  } finally {
    await connection.close();
  }
}
