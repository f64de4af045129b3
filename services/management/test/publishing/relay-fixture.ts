import { randomUUID } from "node:crypto";
import { entryKey, flagEventsStream, snapshotBucket } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { testMessageSigner, testSigner } from "@halyard/testing";
import { flagEntry } from "../../src/flags/flag.ts";
import { createPublications, type Publications } from "../../src/outbox/effects.ts";
import type { StreamName } from "../../src/outbox/unsent-rows.ts";
import type { Broker } from "../../src/publishing/broker.ts";
import { synchronizeEvents } from "../../src/publishing/events.ts";
import { createStreamPublisher } from "../../src/publishing/stream-publisher.ts";
import type { UnreadEvents } from "../../src/publishing/unread-events.ts";
import { booleanFlag } from "../flags/boolean-flag.ts";
import type { Rebuilds } from "../rebuild-fixture.ts";

/** A row of the outbox as a change writes it. */
export type NewRow = { stream: StreamName; subject: string; payload: string };

export const flagRow = (organizationId: string, { flagId = randomUUID(), version = 1 } = {}) => {
  const { address, value } = flagEntry(
    { id: flagId, organizationId, projectId: environmentId, key: "a-flag", ...booleanFlag },
    {
      content: { enabled: false, rollout_percentage: 0, targeting_rules: [] },
      ...{ environmentId, version, updatedAt: new Date(0) },
    },
  );
  return {
    stream: "snapshot" as const,
    subject: entryKey(address),
    payload: JSON.stringify(value),
  };
};

export const keyRow = (organizationId: string, keyId = "a-key", version = 1) => ({
  stream: "snapshot" as const,
  subject: `${organizationId}.key.${keyId}`,
  payload: JSON.stringify({ deleted: true, version, committed_at: new Date(0) }),
});

export const eventRow = (organizationId: string, flagId: string = randomUUID()) => ({
  stream: "events" as const,
  subject: flagEventsStream.subjects[0],
  payload: JSON.stringify({ organization_id: organizationId, flag: { id: flagId } }),
});

const environmentId = randomUUID();

/** Inserts unsent rows. Returns their ids. */
export async function insertRows(sql: Sql, rows: readonly NewRow[]): Promise<number[]> {
  const inserted = await sql<{ id: number }[]>`
    insert into outbox (stream, message_id, subject, payload)
    select row.stream, gen_random_uuid(), row.subject, row.payload
    from unnest(
      ${rows.map(({ stream }) => stream)}::text[],
      ${rows.map(({ subject }) => subject)}::text[],
      ${rows.map(({ payload }) => payload)}::text[]
    ) with ordinality as row (stream, subject, payload, position)
    order by row.position
    returning id`;
  return inserted.map(({ id }) => id);
}

export const unsentCount = async (sql: Sql): Promise<number> => {
  const [row] = await sql`select count(*)::integer as rows from outbox where sent_at is null`;
  return row?.rows;
};

export type Publication = { subject: string; payload: string };

/** Returns a broker that calls and awaits `onPublish` before each publication. */
export function observed(
  broker: Broker,
  onPublish: (publication: Publication) => Promise<void> | undefined,
): Broker {
  const publish: Broker["client"]["publish"] = async (subject, payload, options) => {
    await onPublish({ subject, payload: String(payload) });
    return broker.client.publish(subject, payload, options);
  };
  return { ...broker, client: Object.create(broker.client, { publish: { value: publish } }) };
}

/** Acquires the lease and renews it during `work`. */
export async function whileLeading<T>(
  { lease }: Pick<Rebuilds, "lease">,
  work: () => Promise<T>,
): Promise<T> {
  await lease.acquire();
  const renewing = setInterval(() => void lease.renew(), 500);
  try {
    return await work();
  } finally {
    clearInterval(renewing);
  }
}

/** Synchronizes a stream with the outbox and returns the stream's publisher. The test must hold the lease. */
export async function openPublisher(
  rebuilds: Rebuilds,
  stream: StreamName,
  {
    broker = rebuilds.broker,
    publications = createPublications(),
    unread,
  }: { broker?: Broker; publications?: Publications; unread?: UnreadEvents } = {},
) {
  const { sql, lease } = rebuilds;
  const shared = { stream, sql, lease, broker, publications, isLeading: lease.isHeld };
  if (stream === "events") {
    const { lastSequence } = await synchronizeEvents(sql, lease, broker);
    const sign = testMessageSigner("management");
    return createStreamPublisher({ ...shared, sign, lastSequence, unread });
  }
  const { lastSequence, epoch } = await rebuilds.synchronize();
  return createStreamPublisher({ ...shared, lastSequence, epoch, signer: testSigner });
}

export const organizationOf = ({ subject, payload }: Publication): string =>
  subject.startsWith(snapshotBucket.subjectPrefix)
    ? (subject.slice(snapshotBucket.subjectPrefix.length).split(".")[0] ?? "")
    : JSON.parse(payload).organization_id;
