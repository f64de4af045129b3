import { randomBytes } from "node:crypto";
import {
  createEntrySigner,
  type EntrySigner,
  hasValidSignature,
  makeApiKey,
} from "@halyard/api-keys";
import { completeKey, entryKey, type KeyEntry, snapshotBucket } from "@halyard/contracts";
import { readPage } from "@halyard/jetstream";
import { snapshotPosition } from "@halyard/snapshot";
import {
  payloadOf,
  privateKeyOf,
  readComplete,
  testSigner,
  testVerification,
} from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { v7 as uuidv7 } from "uuid";
import { keyEntry } from "../../src/keys/key.ts";
import { createPublications } from "../../src/outbox/effects.ts";
import { appendMessages } from "../../src/outbox/write.ts";
import { findUnexplained } from "../../src/publishing/restored-database.ts";
import { createStreamPublisher } from "../../src/publishing/stream-publisher.ts";
import { openRebuilds } from "../rebuild-fixture.ts";

const nextSigner = createEntrySigner(privateKeyOf("n"));

const rebuilds = await openRebuilds();
afterAll(async () => rebuilds.close());
await seedKey();

describe("given a leader with a private key", () => {
  it("signs every key of a rebuild, and names the signer", async () => {
    const { epoch } = await rebuilds.synchronize();
    expect(await readComplete(rebuilds.broker.manager)).toMatchObject({
      epoch,
      signed_by: testSigner.id,
    });
    await expectSignedBy(testSigner);
  });

  it("signs the keys of the outbox, and their deletions", async () => {
    const synchronized = await rebuilds.synchronize();
    const entry = await seedKey({ publish: true });
    await publishRows(synchronized);
    await expectSignedBy(testSigner);
    await rebuilds.sql.begin(async (tx) => {
      const value = { deleted: true as const, version: 2, committed_at: entry.value.committed_at };
      const message = { stream: "snapshot" as const, address: entry.address, value };
      await tx`update api_keys set revoked_at = now() where id = ${entry.value.key_id}`;
      await appendMessages(tx, [message], uuidv7);
    });
    await publishRows(await rebuilds.synchronize());
    await expectSignedBy(testSigner);
  });

  it("keeps the snapshot of a leader with the same key", async () => {
    const { epoch } = await rebuilds.synchronize();
    expect(await rebuilds.synchronize()).toMatchObject({ epoch });
  });

  it("keeps the snapshot if a leader crashed before it recorded the signed entries it had published", async () => {
    const { broker, lease, sql } = rebuilds;
    const { epoch, lastSequence } = await rebuilds.synchronize();
    const entry = await seedKey({ publish: true });
    await broker.client.publish(subjectOf(entry), await payloadOf(entry));
    await lease.acquire();
    expect(await findUnexplained(sql, lease, broker, testVerification())).toBeUndefined();
    const next = await rebuilds.synchronize();
    expect(next).toMatchObject({ epoch, lastSequence: lastSequence + 1 });
    await publishRows(next);
  });

  it("rebuilds the snapshot of a leader with another key", async () => {
    const before = await rebuilds.synchronize();
    const { epoch } = await rebuilds.synchronize({ signer: nextSigner });
    expect(epoch).not.toBe(before.epoch);
    await expectSignedBy(nextSigner);
    await rebuilds.synchronize();
    await expectSignedBy(testSigner);
  });

  it.each<[string, (genuine: string) => string]>([
    ["another epoch", (genuine) => JSON.stringify({ ...JSON.parse(genuine), epoch: uuidv7() })],
    ["the same entry at a later position", (genuine) => genuine],
    ["a response of NATS", () => '{"type":"io.nats.jetstream.api.v1.stream_info_response"}'],
  ])("rebuilds the snapshot if another client stored %s as `complete`", async (_what, forge) => {
    const { broker, lease, sql } = rebuilds;
    const before = await rebuilds.synchronize();
    const subject = snapshotBucket.subjectPrefix + completeKey;
    const genuine = await broker.manager.direct.getMessage(snapshotBucket.streamName, {
      last_by_subj: subject,
    });
    const forged = forge(genuine?.string() ?? "");
    await broker.client.publish(subject, forged);
    await lease.acquire();
    await findUnexplained(sql, lease, broker, testVerification());
    const { epoch } = await rebuilds.synchronize();
    expect(forged).not.toContain(epoch);
    expect(epoch).not.toBe(before.epoch);
    await expectSignedBy(testSigner);
  });

  it("rebuilds the snapshot if another client stored the entry of an API key without its signature", async () => {
    const { broker, lease, sql } = rebuilds;
    const { epoch } = await rebuilds.synchronize();
    const entry = await seedKey({ publish: true });
    await broker.client.publish(subjectOf(entry), JSON.stringify(entry.value));
    await lease.acquire();
    expect(await findUnexplained(sql, lease, broker, testVerification())).toBeUndefined();
    expect((await rebuilds.synchronize()).epoch).not.toBe(epoch);
    await expectSignedBy(testSigner);
  });
});

type KeyMessage = {
  address: { kind: "key"; organizationId: string; keyId: string };
  value: KeyEntry;
};

const subjectOf = ({ address }: KeyMessage) => snapshotBucket.subjectPrefix + entryKey(address);

/** Publishes the rows of the outbox as the leader does. */
async function publishRows({ epoch, lastSequence }: { epoch: string; lastSequence: number }) {
  const { sql, lease, broker } = rebuilds;
  await lease.acquire();
  const publisher = createStreamPublisher({
    ...{ stream: "snapshot", sql, lease, broker, publications: createPublications() },
    ...{ epoch, lastSequence, signer: testSigner, isLeading: lease.isHeld },
  });
  expect(await publisher.drain()).toBeGreaterThan(0);
}

/** Expects that every key and key tombstone in the bucket has a valid signature of this signer. */
async function expectSignedBy(signer: EntrySigner): Promise<void> {
  const { connection, manager } = rebuilds.broker;
  const publicKeys = new Map([[signer.id, signer.publicKey]]);
  const verdicts: boolean[] = [];
  const stream = snapshotBucket.streamName;
  await readPage(
    { connection, manager, stream, fromSequence: 1, pageSize: 1_000 },
    ({ subject, payload }) => {
      const key = subject.slice(snapshotBucket.subjectPrefix.length);
      if (!key.includes(".key.")) return;
      const entry = JSON.parse(new TextDecoder().decode(payload));
      verdicts.push(hasValidSignature(key, entry, publicKeys));
    },
  );
  expect(verdicts.length).toBeGreaterThan(0);
  expect(new Set(verdicts)).toEqual(new Set([true]));
  expect(await snapshotPosition(manager)).toMatchObject({ isComplete: true });
}

/** Inserts a key into the tables and, if `publish` is true, into the outbox. */
async function seedKey({ publish = false } = {}): Promise<KeyMessage> {
  const made = makeApiKey("server", randomBytes);
  const now = new Date();
  const ids = { organization: uuidv7(), project: uuidv7(), environment: uuidv7(), user: uuidv7() };
  const entry = keyEntry({
    id: made.id,
    secretSha256: made.secretSha256,
    kind: "server",
    organizationId: ids.organization,
    projectId: ids.project,
    environmentId: ids.environment,
    userId: ids.user,
    environmentOnly: false,
    scope: "write",
    version: 1,
    expiresAt: null,
    committedAt: now,
  });
  await rebuilds.sql.begin(async (tx) => {
    await tx`insert into organizations
      values (${ids.organization}, 'Acme', 'pro', 1, ${now}, ${now})`;
    await tx`insert into users values (${ids.user}, ${ids.organization}, 'ada@example.com', 'Ada', ${now})`;
    await tx`insert into projects values (${ids.project}, ${ids.organization}, 'Web', ${now})`;
    await tx`insert into environments values (${ids.environment}, ${ids.project}, 'test', ${now})`;
    await tx`insert into api_keys (id, secret_sha256, kind, name, environment_id, user_id,
        environment_only, version, created_at)
      values (${made.id}, ${made.secretSha256}, 'server', 'seeded', ${ids.environment}, ${ids.user},
        false, 1, ${now})`;
    if (publish) await appendMessages(tx, [{ stream: "snapshot", ...entry }], uuidv7);
  });
  return entry as KeyMessage;
}
