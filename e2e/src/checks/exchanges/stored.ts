import { flagEventsStream, quotaBucket, snapshotBucket, usageStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type postgres from "postgres";
import { readAll } from "../agreement.ts";
import type { Mask } from "./mask.ts";
import type { Transcript } from "./transcript.ts";

/** Number of requests in the chapters about SDKs, OFREP and streams that count towards the month. */
const countedRequests = 53;

/** Waits until usage-metering has counted every request and published the sum. */
async function awaitCounted(natsUrl: string): Promise<void> {
  const counted = async () => {
    const entries = await readAll(natsUrl, quotaBucket.streamName);
    const published = entries.map(({ payload }) => (payload as { requests: number }).requests);
    // Shows in a failure whether the edge has not sent its counts, or whether they are not counted.
    const waiting = (await readAll(natsUrl, usageStream.name)).length;
    return { published, waiting };
  };
  await eventually(counted, {
    until: ({ published }) => published.includes(countedRequests),
    because: "every request is counted",
  });
}

/** Waits until the audit log contains the changes of webhooks and schedules. */
export async function awaitAudited(sql: postgres.Sql): Promise<void> {
  const waiting = () => sql`
    select from scheduler.audit_outbox union all select from webhooks.audit_outbox`;
  await eventually(waiting, {
    until: (rows) => rows.length === 0,
    because: "the audit log is complete",
  });
}

/** Waits until management has stored the times of last use: of three keys and three flags in this scenario. */
async function awaitLastSeen(sql: postgres.Sql): Promise<void> {
  const seen = async () => {
    const [row] = await sql<{ keys: number; flags: number }[]>`
      select (select count(*)::integer from management.keys_last_seen) as keys,
        (select count(*)::integer from management.flags_last_seen) as flags`;
    return row;
  };
  await eventually(seen, {
    until: (row) => row?.keys === 3 && row.flags === 3,
    because: "management has stored the times of last use",
  });
}

/** Waits until webhook-dispatcher has read every event. A webhook created after that gets no delivery for them. */
export async function awaitEventsRead(connection: NatsConnection): Promise<void> {
  const manager = await jetstreamManager(connection);
  const { name, webhookConsumer } = flagEventsStream;
  const unread = async () => {
    const { num_pending, num_ack_pending } = await manager.consumers.info(name, webhookConsumer);
    return num_pending + num_ack_pending;
  };
  await eventually(unread, {
    until: (count) => count === 0,
    because: "every event is read",
  });
}

/** Records what the scenario has stored: entries and events in NATS, and the rows of every table. */
export async function recordStored(
  { note }: Transcript,
  { sql, natsUrl, mask }: { sql: postgres.Sql; natsUrl: string; mask: Mask },
): Promise<void> {
  await awaitCounted(natsUrl);
  await awaitLastSeen(sql);
  await awaitAudited(sql);
  const events = await readAll(natsUrl, flagEventsStream.name);
  note(
    "the log of events",
    events.map(({ subject, payload }) => mask(`${subject} ${JSON.stringify(payload)}`)).join("\n"),
  );
  for (const bucket of [snapshotBucket, quotaBucket]) {
    const entries = await readAll(natsUrl, bucket.streamName);
    const lines = entries.map(({ subject, payload }) => `${subject} ${JSON.stringify(payload)}`);
    note(`entries of ${bucket.bucket}`, maskInOrder(lines, mask).join("\n"));
  }
  await recordRows({ note }, sql, mask);
}

/** Tables whose rows depend on the time, on the order of unrelated work, or on which process leads. */
const restless = [
  ...["leases", "relay_streams", "migrations", "outbox", "edges"],
  ...["idempotency_answers", "idempotency_keys"],
];

/** A column that differs between runs, because the dispatcher and the scheduler add to the audit log through NATS. */
const unordered = "sequence";

/** Columns that depend on the time. A lane becomes due again after each claim and each attempt. */
const restlessColumns: Record<string, string> = { "webhooks.lanes": "due_at" };

/** Masks texts whose order differs between runs. Sorts them by their form under a mask that has not seen the others. */
function maskInOrder(texts: readonly string[], mask: Mask): string[] {
  const shapes = texts.map((text) => [mask.fork()(text), text] as const);
  shapes.sort(([a], [b]) => (a < b ? -1 : a > b ? 1 : 0));
  return shapes.map(([, text]) => mask(text));
}

async function recordRows(
  { note }: Pick<Transcript, "note">,
  sql: postgres.Sql,
  mask: Mask,
): Promise<void> {
  const tables = await sql<{ schema: string; name: string }[]>`
    select schemaname as schema, tablename as name from pg_tables
    where schemaname in ('management', 'scheduler', 'webhooks', 'usage')
      and tablename <> all(${restless})
    order by schemaname, tablename`;
  for (const { schema, name } of tables) {
    const omitted = [unordered, restlessColumns[`${schema}.${name}`] ?? unordered];
    const rows = await sql<{ row: object }[]>`
      select to_jsonb(t) - ${omitted}::text[] as row from ${sql(schema)}.${sql(name)} as t`;
    const shown = maskInOrder(
      rows.map(({ row }) => JSON.stringify(row)),
      mask,
    );
    note(`rows of ${schema}.${name}`, shown.join("\n"));
  }
}

/**
 * Records messages of streams that keep no messages: due changes and their results. The usage reports of edges depend
 * on timing, so only their field names are recorded.
 */
export function listenToMessages(connection: NatsConnection): {
  record(transcript: Transcript, mask: Mask): void;
} {
  const messages: { subject: string; payload: unknown }[] = [];
  for (const subject of ["schedule.>", "usage.>", "audit.>"])
    connection.subscribe(subject, {
      callback: (error, message) => {
        if (error === null) messages.push({ subject: message.subject, payload: message.json() });
      },
    });
  return {
    record({ note }, mask) {
      const lines = messages.map(({ subject, payload }) =>
        subject.startsWith("usage.")
          ? `${subject} ${Object.keys(payload as object)
              .sort()
              .join(" ")}`
          : `${subject} ${JSON.stringify(payload)}`,
      );
      note("messages of work queues", maskInOrder([...new Set(lines)], mask).join("\n"));
    },
  };
}
