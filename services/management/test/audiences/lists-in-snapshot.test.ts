import { createHash } from "node:crypto";
import { type AudienceEntry, type ChunkEntry, entryKey, snapshotBucket } from "@halyard/contracts";
import { eventually, recreateSnapshot } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { settle } from "../../src/publishing/records.ts";
import { type Management, openManagement, seedProject } from "../management-fixture.ts";
import { audiencesOf } from "./audience-fixture.ts";

/** Tests what readers of the snapshot receive, over the real broker. */
let management: Management;
let project: Awaited<ReturnType<typeof seedProject>>;
let given: ReturnType<typeof audiencesOf>;
let connection: NatsConnection;
let manager: JetStreamManager;
beforeAll(async () => {
  management = await openManagement();
  project = await seedProject(management);
  given = audiencesOf(management, project);
  connection = await connect({ servers: management.natsUrl });
  manager = await jetstreamManager(connection);
});
afterAll(async () => {
  await connection.close();
  await management.close();
});

async function entryIn(key: string) {
  const found = await manager.streams.getMessage(snapshotBucket.streamName, {
    last_by_subj: snapshotBucket.subjectPrefix + key,
  });
  return found === null ? undefined : found.json<Record<string, unknown>>();
}

/** Returns the entry of an audience with this version and the entries of its chunks. */
async function entriesOf(id: string, version: number) {
  const { organizationId, projectId } = project;
  const address = { kind: "audience" as const, organizationId, projectId, audienceId: id };
  const audience = (await eventually(async () => {
    const entry = await entryIn(entryKey(address));
    return entry?.version === version && entry;
  })) as AudienceEntry;
  const chunks = await Promise.all(
    (audience.list?.chunks ?? []).map((sha256) =>
      entryIn(entryKey({ kind: "chunk", organizationId, audienceId: id, sha256 })),
    ),
  );
  return { audience, chunks: chunks as ChunkEntry[] };
}

describe("a list of 150,000 entries", () => {
  it("is in the snapshot as chunks that their hashes name, and is the same after a rebuild", async () => {
    await given.create({ key: "large" });
    const lines = Array.from({ length: 150_000 }, (_, index) => `user-${index}\n`).join("");
    expect(await given.upload("large", lines)).toMatchObject({ status: 200 });
    const id = await given.idOf("large");
    const published = await entriesOf(id, 2);
    expect(published.audience.list).toMatchObject({ attribute: "id", count: 150_000 });
    expect(published.audience.needs).toEqual(["lists"]);
    const bytes = published.chunks.map(({ data }) => Buffer.from(data, "base64"));
    expect(bytes.map((chunk) => createHash("sha256").update(chunk).digest("hex"))).toEqual(
      published.audience.list?.chunks,
    );
    expect(Buffer.concat(bytes)).toHaveLength(150_000 * 8);
    await management.stop();
    await recreateSnapshot(manager);
    management = await openManagement({ over: management.backends });
    given = audiencesOf(management, project);
    expect(await entriesOf(id, 2)).toEqual(published);
  });
});

describe("a published chunk", () => {
  it("leaves the outbox, which keeps other rows for days", async () => {
    await given.create({ key: "published" });
    await given.upload("published", "ada\n");
    const id = await given.idOf("published");
    const rows = () => management.sql<{ bytes: number }[]>`
      select octet_length(payload) as bytes from outbox
      where subject like ${`%.chunk.${id}.%`} and stream_sequence is not null`;
    const [row] = await eventually(async () => {
      const found = await rows();
      return found.length > 0 && found;
    });
    expect(row).toEqual({ bytes: 0 });
  });

  it("leaves the outbox even if a newer value was published in its place", async () => {
    const [row] = await management.sql.begin(async (tx) => {
      const [{ id }] = await tx<[{ id: number }]>`
        insert into outbox (stream, message_id, subject, payload)
        values ('snapshot', gen_random_uuid(), 'a.chunk.b.c', 'data') returning id`;
      await settle(tx, [{ id, sequence: null }]);
      return tx`select payload from outbox where id = ${id}`;
    });
    expect(row).toEqual({ payload: "" });
  });
});

describe("a changed list", () => {
  it("leaves tombstones of its former chunks with its version", async () => {
    await given.create({ key: "small" });
    await given.change("small", { add: ["ada"] });
    const id = await given.idOf("small");
    const { audience } = await entriesOf(id, 2);
    await given.change("small", { add: ["grace"] });
    await entriesOf(id, 3);
    const key = `${project.organizationId}.chunk.${id}.${audience.list?.chunks[0]}`;
    await eventually(async () => (await entryIn(key))?.deleted === true);
    expect(await entryIn(key)).toMatchObject({ version: 3 });

    await given.change("small", { remove: ["grace"] });
    const back = await entriesOf(id, 4);
    expect(back.audience.list?.chunks).toEqual(audience.list?.chunks);
    expect(back.chunks).toMatchObject([{ version: 4 }]);
  });
});
