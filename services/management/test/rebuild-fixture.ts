import { randomUUID } from "node:crypto";
import type { EntrySigner } from "@halyard/api-keys";
import { type FlagEntry, snapshotBucket } from "@halyard/contracts";
import { connectNats, readPage } from "@halyard/jetstream";
import { connectPostgres, type Sql } from "@halyard/postgres";
import { createTestDatabase, startTestNats, testSigner } from "@halyard/testing";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";
import { v7 as uuidv7 } from "uuid";
import { flagEntry } from "../src/flags/flag.ts";
import { variationColumns } from "../src/flags/flag-store.ts";
import { createPublications, type Publications } from "../src/outbox/effects.ts";
import { appendMessages } from "../src/outbox/write.ts";
import type { Broker } from "../src/publishing/broker.ts";
import { createLease, type Lease } from "../src/publishing/lease.ts";
import { synchronizeSnapshot } from "../src/publishing/snapshot.ts";

type Given = {
  signer?: EntrySigner;
  sql?: Sql;
  lease?: Lease;
  broker?: Broker;
  publications?: Publications;
};

/** A database and a NATS server without management. The test itself is the leader. */
export type Rebuilds = Awaited<ReturnType<typeof openRebuilds>>;

const logger = pino({ level: process.env.TEST_LOG_LEVEL ?? "silent" });

export async function openRebuilds() {
  const [database, nats] = await Promise.all([createTestDatabase(), startTestNats()]);
  const url = database.runtimeUrls.management;
  const sql = connectPostgres({ url, name: "test", maxConnections: 4, logger });
  const direct = await openBroker(nats.url);
  const lease = createLease({
    sql,
    name: "relay",
    holder: randomUUID(),
    monotonicMs: () => performance.now(),
    // The order of messages must not depend on renewals in time, which a busy machine delays.
    durationMs: 3_600_000,
  });

  return {
    sql,
    broker: direct,
    natsUrl: nats.url,
    databaseUrl: url,
    lease,
    /** Synchronizes the snapshot with the outbox, as a leader does at the start of a term. */
    async synchronize(given: Given = {}) {
      await lease.acquire();
      const keepLease = setInterval(() => void lease.renew(), 500);
      const { sql: over = sql, lease: leading = lease, broker = direct } = given;
      try {
        return await synchronizeSnapshot(over, leading, broker, {
          signer: given.signer ?? testSigner,
          newEpoch: randomUUID,
          publications: given.publications ?? createPublications(),
          isLeading: lease.isHeld,
        });
      } finally {
        clearInterval(keepLease);
      }
    },
    async close() {
      await direct.connection.close();
      await sql.end();
      await Promise.all([database.drop(), nats.stop()]);
    },
  };
}

export async function openBroker(url: string): Promise<Broker> {
  const connection = await connectNats({ nats: { url }, name: "test", logger });
  const manager = await jetstreamManager(connection);
  return { connection, client: jetstream(connection), manager, replicas: 1, logger };
}

/** Creates an organization with a project, an environment and flags. */
export async function seedFlags(sql: Sql, count: number): Promise<{ organizationId: string }> {
  const ids = { organization: uuidv7(), project: uuidv7(), environment: uuidv7() };
  const now = new Date();
  await sql`insert into organizations
    values (${ids.organization}, 'Acme', 'pro', 1, ${now}, ${now})`;
  await sql`insert into projects values (${ids.project}, ${ids.organization}, 'Web', ${now})`;
  await sql`insert into environments values (${ids.environment}, ${ids.project}, 'test', ${now})`;
  await sql`
    with flag as (
      insert into flags (id, project_id, key, name, description, type, version, last_event_at,
        created_at, updated_at)
      select gen_random_uuid(), ${ids.project}, 'flag-' || number, 'A flag', '', 'boolean', 1,
        ${now}, ${now}, ${now}
      from generate_series(1, ${count}) as number
      returning id
    )
    insert into flag_states
    select flag.id, ${ids.environment}, jsonb_build_object('enabled', false, 'rollout_percentage', 0, 'targeting_rules', '[]'::jsonb), 1,
      ${now}
    from flag`;
  return { organizationId: ids.organization };
}

/** Changes a flag as a request does: one transaction writes its state and the row of the outbox. */
export async function toggle(sql: Sql, flagId: string): Promise<void> {
  await sql.begin(async (tx) => {
    const [row] = await tx<Parameters<typeof flagEntry>[0] & Parameters<typeof flagEntry>[1][]>`
      update flag_states as state
      set content = state.content || jsonb_build_object('enabled', state.content -> 'enabled' = 'false'),
        version = state.version + 1
      from flags as flag, projects as project
      where flag.id = ${flagId} and state.flag_id = flag.id and project.id = flag.project_id
      returning flag.id, project.organization_id as "organizationId",
        flag.project_id as "projectId", flag.key, ${variationColumns}, state.environment_id as "environmentId",
        state.content, state.version, state.updated_at as "updatedAt"`;
    const entry = flagEntry(row as never, row as never);
    await appendMessages(tx, [{ stream: "snapshot", ...entry }], uuidv7);
  });
}

/** Deletes a flag as a request does. */
export async function remove(sql: Sql, flagId: string): Promise<void> {
  await sql.begin(async (tx) => {
    const [flag] = await tx`
      select project.organization_id as "organizationId", state.environment_id as "environmentId",
        flag.id as "flagId", state.version
      from flags as flag
      join projects as project on project.id = flag.project_id
      join flag_states as state on state.flag_id = flag.id
      where flag.id = ${flagId}`;
    const { version, ...address } = flag as { version: number } & Record<string, string>;
    await tx`delete from flags where id = ${flagId}`;
    const value = {
      deleted: true as const,
      version: version + 1,
      committed_at: new Date().toISOString(),
    };
    const message = { stream: "snapshot", address: { kind: "flag", ...address }, value };
    await appendMessages(tx, [message as never], uuidv7);
  });
}

/** Returns the versions of the flags in the tables, by id. */
export async function flagsInTables(sql: Sql): Promise<Record<string, number>> {
  const rows = await sql<{ id: string; version: number }[]>`
    select flag_id as id, version from flag_states`;
  return Object.fromEntries(rows.map(({ id, version }) => [id, version]));
}

/** Returns the versions of the flags in the bucket, by id, without deleted flags. */
export async function flagsInBucket({ connection, manager }: Broker) {
  const found: Record<string, number> = {};
  const stream = snapshotBucket.streamName;
  const everything = { connection, manager, stream, fromSequence: 1, pageSize: 1_000_000 };
  await readPage(everything, ({ subject, payload }) => {
    if (!subject.includes(".flag.")) return;
    const entry = JSON.parse(new TextDecoder().decode(payload)) as Partial<FlagEntry>;
    if (entry.flag_id !== undefined) found[entry.flag_id] = entry.version ?? 0;
  });
  return found;
}
