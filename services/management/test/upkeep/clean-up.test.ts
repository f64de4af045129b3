import { randomUUID } from "node:crypto";
import { defaultPlans, flagEventsStream, snapshotBucket } from "@halyard/contracts";
import { createMetrics } from "@halyard/service";
import {
  eventually,
  testMessageSigner,
  testMessageVerifier,
  testSignatures,
  testSigner,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import type { JetStreamManager } from "@nats-io/jetstream";
import { v7 as uuidv7 } from "uuid";
import { createPublications } from "../../src/outbox/effects.ts";
import { createRelayMetrics, type Relay, startRelay } from "../../src/publishing/relay.ts";
import { cleanUp, startCleanUp } from "../../src/upkeep/clean-up.ts";
import { openRebuilds, type Rebuilds } from "../rebuild-fixture.ts";

/** Tests the clean-up of many old tombstones while the leader publishes. */
const tombstones = 3_000;

let rebuilds: Rebuilds;
let relay: Relay;
let cleaning: ReturnType<typeof startCleanUp>;
/** Purges wait until this resolves. */
let gate = Promise.withResolvers<void>();
let underWay = 0;
let maxUnderWay = 0;

beforeAll(async () => {
  rebuilds = await openRebuilds();
  const broker = { ...rebuilds.broker, manager: gated(rebuilds.broker.manager) };
  relay = startRelay({
    ...{ ...rebuilds, broker },
    publications: createPublications(),
    plans: defaultPlans,
    groupsOrganizations: [],
    signer: testSigner,
    signatures: testSignatures(),
    sign: testMessageSigner("management"),
    verify: testMessageVerifier,
    now: () => new Date(),
    newId: uuidv7,
    newEpoch: randomUUID,
    metrics: createRelayMetrics(createMetrics({ service: "management" })),
    logger: rebuilds.broker.logger,
  });
  cleaning = startCleanUp({ ...rebuilds, broker, isLeading: relay.isLeading, intervalMs: 50 });
  await eventually(() => relay.isLeading());
  await writeTombstones(tombstones);
});
afterAll(async () => {
  gate.resolve();
  await cleaning?.stop();
  await relay?.stop();
  await rebuilds?.close();
});

/** Returns a manager whose purges of tombstones wait for the gate. */
function gated(manager: JetStreamManager): JetStreamManager {
  const streams = Object.create(manager.streams) as JetStreamManager["streams"];
  streams.purge = async (name, options) => {
    if (!options?.filter?.includes(".gone.")) return manager.streams.purge(name, options);
    underWay += 1;
    maxUnderWay = Math.max(maxUnderWay, underWay);
    await gate.promise;
    underWay -= 1;
    return manager.streams.purge(name, options);
  };
  return Object.create(manager, { streams: { value: streams } }) as JetStreamManager;
}

/** Publishes tombstones through the relay and backdates them. */
async function writeTombstones(count: number): Promise<void> {
  const { sql } = rebuilds;
  await sql`
    insert into outbox (stream, message_id, subject, payload, tombstone)
    select 'snapshot', gen_random_uuid(), 'gone.flag.gone.' || gen_random_uuid(), '{}', true
    from generate_series(1, ${count})`;
  relay.wake();
  await eventually(async () => (await unsent()) === 0);
  await sql`update outbox set sent_at = sent_at - interval '8 days' where tombstone`;
}

async function unsent(): Promise<number> {
  const [row] = await rebuilds.sql`select count(*)::integer as rows from outbox
    where sent_at is null`;
  return row?.rows;
}

async function rowsOfTombstones(): Promise<number> {
  const [row] = await rebuilds.sql`select count(*)::integer as rows from outbox where tombstone`;
  return row?.rows;
}

async function tombstonesInBucket(): Promise<number> {
  const { state } = await rebuilds.broker.manager.streams.info(snapshotBucket.streamName, {
    subjects_filter: `${snapshotBucket.subjectPrefix}gone.>`,
  });
  return Object.keys(state.subjects ?? {}).length;
}

describe("given a leader that purges thousands of tombstones", () => {
  it("begins its next term and publishes changes meanwhile", async () => {
    const { sql, broker } = rebuilds;
    await eventually(() => underWay > 0, { because: "the clean-up purges" });
    await broker.manager.streams.delete(flagEventsStream.name);
    await eventually(async () => (await streamExists()) && relay.isLeading());
    await sql`
      insert into outbox (stream, message_id, subject, payload)
      values ('events', ${randomUUID()}, 'flag.updated', '{}')`;
    relay.wake();
    await eventually(async () => (await unsent()) === 0, { because: "the change is published" });
    expect(await rowsOfTombstones()).toBe(tombstones);
  });

  it("purges four concurrently until none is left", async () => {
    expect(maxUnderWay).toBe(4);
    gate.resolve();
    await eventually(async () => (await rowsOfTombstones()) === 0, { withinMs: 30_000 });
    expect(await tombstonesInBucket()).toBe(0);
  });

  it("purges the flags of a deleted environment before its tombstone, and no others", async () => {
    const [organizationId, gone, kept] = [randomUUID(), randomUUID(), randomUUID()];
    const environment = `${organizationId}.environment.${gone}`;
    const flags = [gone, kept].map((id) => `${organizationId}.flag.${id}.${randomUUID()}`);
    // The first flag is published after the tombstone, as a change that was committed before the deletion can be.
    await publish([{ subject: environment, tombstone: true }]);
    await publish(flags.map((subject) => ({ subject, tombstone: false })));
    expect(await keysIn(organizationId)).toEqual([environment, ...flags].sort());
    await rebuilds.sql`update outbox set sent_at = sent_at - interval '8 days'`;
    await eventually(async () => !(await keysIn(organizationId)).includes(environment));
    expect(await keysIn(organizationId)).toEqual([flags[1]]);
  });

  it("purges deletions of chunks after ten minutes, and no others", async () => {
    const [organizationId, audienceId] = [randomUUID(), randomUUID()];
    const chunk = `${organizationId}.chunk.${audienceId}.${"0".repeat(64)}`;
    const audience = `${organizationId}.audience.${randomUUID()}.${audienceId}`;
    await publish([chunk, audience].map((subject) => ({ subject, tombstone: true })));
    expect(await keysIn(organizationId)).toEqual([audience, chunk]);
    await rebuilds.sql`update outbox set sent_at = sent_at - interval '11 minutes'`;
    await eventually(async () => !(await keysIn(organizationId)).includes(chunk));
    expect(await keysIn(organizationId)).toEqual([audience]);
  });

  async function publish(rows: { subject: string; tombstone: boolean }[]): Promise<void> {
    for (const { subject, tombstone } of rows)
      await rebuilds.sql`
        insert into outbox (stream, message_id, subject, payload, tombstone)
        values ('snapshot', gen_random_uuid(), ${subject}, '{}', ${tombstone})`;
    relay.wake();
    await eventually(async () => (await unsent()) === 0);
  }

  async function keysIn(organizationId: string): Promise<string[]> {
    const { subjectPrefix, streamName } = snapshotBucket;
    const { state } = await rebuilds.broker.manager.streams.info(streamName, {
      subjects_filter: `${subjectPrefix}${organizationId}.>`,
    });
    const subjects = Object.keys(state.subjects ?? {});
    return subjects.map((subject) => subject.slice(subjectPrefix.length)).sort();
  }

  const streamExists = () =>
    rebuilds.broker.manager.streams.info(flagEventsStream.name).then(
      () => true,
      () => false,
    );
});

describe("given a clean-up that is interrupted", () => {
  it("keeps the rows of tombstones that were not purged", async () => {
    gate = Promise.withResolvers();
    gate.resolve();
    await relay.stop();
    const { sql, broker } = rebuilds;
    await sql`
      insert into outbox (stream, message_id, subject, payload, tombstone)
      select 'snapshot', gen_random_uuid(), 'gone.flag.gone.' || gen_random_uuid(), '{}', true
      from generate_series(1, 100)`;
    await sql`update outbox set sent_at = now() - interval '8 days', stream_sequence = id
      where tombstone`;
    let purges = 0;
    await cleanUp(sql, broker, () => ++purges <= 30);
    expect(await rowsOfTombstones()).toBeGreaterThan(70);
    await cleanUp(sql, broker, () => true);
    expect(await rowsOfTombstones()).toBe(0);
  });
});

describe("given an entry that was written again after its deletion", () => {
  it("keeps the entry", async () => {
    const { sql, broker } = rebuilds;
    const subject = "back.flag.back.again";
    const { seq } = await broker.client.publish(snapshotBucket.subjectPrefix + subject, "{}");
    await sql`
      insert into outbox (stream, message_id, subject, payload, tombstone)
      values ('snapshot', ${randomUUID()}, ${subject}, '{}', true)`;
    await sql`update outbox set sent_at = now() - interval '8 days', stream_sequence = ${seq - 1}
      where subject = ${subject}`;
    await cleanUp(sql, broker, () => true);
    expect(await rowsOfTombstones()).toBe(0);
    const message = await broker.manager.direct.getMessage(snapshotBucket.streamName, {
      last_by_subj: snapshotBucket.subjectPrefix + subject,
    });
    expect(message?.seq).toBe(seq);
  });
});
