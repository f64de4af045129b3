import { flagEventsStream, quotaBucket, scheduleStream } from "@halyard/contracts";
import {
  connectNats,
  deleteStream,
  ensureFlagEvents,
  ensureQuota,
  ensureSchedule,
  findStream,
} from "@halyard/jetstream";
import { eventually, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "@jest/globals";
import {
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  RetentionPolicy,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";

const replicas = 8;
const rounds = 20;

let nats: TestNats;
let connections: NatsConnection[];
let managers: JetStreamManager[];
beforeAll(async () => {
  nats = await startTestNats();
  const logger = pino({ level: "silent" });
  const connect = () => connectNats({ nats: { url: nats.url }, name: "test", logger });
  connections = await Promise.all(Array.from({ length: replicas }, connect));
  managers = await Promise.all(connections.map((each) => jetstreamManager(each)));
});
afterAll(async () => {
  await Promise.all(connections.map((each) => each.close()));
  await nats.stop();
});

describe("given a stream that several processes create at the same time", () => {
  it("is created once, without an error in any process", async () => {
    for (let round = 0; round < rounds; round += 1) {
      const starting = await Promise.all(connections.map((each) => jetstreamManager(each)));
      await Promise.all(starting.map((manager) => ensureQuota(manager, 1)));
      expect(await managers[0]?.streams.delete(quotaBucket.streamName)).toBe(true);
    }
  });
});

describe("given a deleted stream", () => {
  it("is created again when the broker has had time to remove its directory", async () => {
    const [keeper, operator] = managers as [JetStreamManager, JetStreamManager];
    await ensureQuota(keeper, 1);
    const deletedAt = Date.now();
    const deleted = operator.streams.delete(quotaBucket.streamName);
    await eventually(async () => (await findStream(keeper, quotaBucket.streamName)) === undefined);
    const { createdAt } = await ensureQuota(keeper, 1);
    expect(Date.parse(createdAt)).toBeGreaterThanOrEqual(deletedAt + 1_000);
    await deleted;
  });
});

describe("given a stream that an earlier release created with fewer subjects", () => {
  const manager = () => managers[0] as JetStreamManager;
  const client = () => jetstream(connections[0] as NatsConnection);
  const { name, allSubjects: subjects } = flagEventsStream;
  const outside = (...prefixes: string[]) =>
    subjects.filter((subject) => !prefixes.some((prefix) => subject.startsWith(prefix)));
  const subjectsOf = async () => (await findStream(manager(), name))?.config.subjects;
  afterEach(async () => {
    await deleteStream(manager(), name);
  });

  it("accepts events with the new subjects, and keeps its messages and other settings", async () => {
    const [first = "", ...added] = subjects;
    const changed = { max_bytes: 1_000_000, max_age: 3_600_000_000_000, description: "ours" };
    await manager().streams.add({ name, subjects: [first, "flag.imported"], ...changed });
    await client().publish(first, "kept");
    const created = (await findStream(manager(), name))?.created;

    const position = await ensureFlagEvents(manager(), 1, 2_000_000);
    expect(position).toEqual({ createdAt: created, lastSequence: 1 });
    for (const subject of added) await client().publish(subject, "new");
    const info = await findStream(manager(), name);
    expect(info?.config).toMatchObject(changed);
    expect(info?.config.subjects).toEqual([first, "flag.imported", ...added]);
    expect(info?.state).toMatchObject({ first_seq: 1, messages: 1 + added.length });
  });

  it.each([
    [
      ["flag.*", "flag_state.>"],
      ["flag.*", "flag_state.>", ...outside("flag.", "flag_state.")],
    ],
    [["*.*"], ["*.*"]],
    [["flag.>"], ["flag.>", ...outside("flag.")]],
    [["flag.*.>"], ["flag.*.>", ...subjects]],
  ])("with the subjects %j gets the subjects %j", async (former, expected) => {
    await manager().streams.add({ name, subjects: former });
    await ensureFlagEvents(manager(), 1);
    expect(await subjectsOf()).toEqual(expected);
  });

  it("has all subjects after several processes added them at the same time", async () => {
    await manager().streams.add({ name, subjects: ["flag.created"] });
    await Promise.all(managers.map((each) => ensureFlagEvents(each, 1)));
    expect(new Set(await subjectsOf())).toEqual(new Set(subjects));
  });

  it("also adds subjects to a queue", async () => {
    const { due, resolved } = scheduleStream;
    const queue = { name: scheduleStream.name, subjects: [due.subject] };
    await manager().streams.add({ ...queue, retention: RetentionPolicy.Workqueue });
    await client().publish(due.subject, "kept");
    await ensureSchedule(manager(), 1);
    await client().publish(resolved.subject, "new");
    expect((await findStream(manager(), queue.name))?.state.messages).toBe(2);
  });
});
