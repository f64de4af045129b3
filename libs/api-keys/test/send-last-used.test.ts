import { createLastUsed, sendLastUsed } from "@halyard/api-keys";
import { checkUsageLastSeen, type UsageLastSeen, usageStream } from "@halyard/contracts";
import { ensureUsage, parseJson } from "@halyard/jetstream";
import { eventually, startTestNats } from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";

const nats = await startTestNats();
const connection = await connect({ servers: nats.url });
afterAll(async () => {
  await connection.close();
  await nats.stop();
});
const manager = await jetstreamManager(connection);

let stop: () => Promise<void>;
afterEach(() => stop());

/** Sends times of last use to management every second. `failures` contains the log. */
function startSending() {
  const lastUsed = createLastUsed();
  const failures: string[] = [];
  const lastUsedSender = sendLastUsed({
    client: jetstream(connection),
    lastUsed,
    monotonicMs: () => performance.now(),
    logger: pino({ level: "warn" }, { write: (line) => void failures.push(line) }),
  });
  stop = lastUsedSender.stop;
  return { note: lastUsed.note, failures };
}

const countMessages = async () => (await manager.streams.info(usageStream.name)).state.messages;

async function newest(): Promise<UsageLastSeen> {
  const message = await manager.streams.getMessage(usageStream.name, {
    last_by_subj: usageStream.lastSeen.subject,
  });
  const checked = message && checkUsageLastSeen(parseJson(message.data));
  if (checked?.ok !== true) throw new Error("there is no such message");
  return checked.value;
}

/** Returns a counter of the requests for the state of the queue. */
function countRequests(): () => number {
  let requests = 0;
  connection.subscribe(`$JS.API.STREAM.INFO.${usageStream.name}`, {
    callback: () => {
      requests += 1;
    },
  });
  return () => requests;
}

const firstUse = Date.parse("2027-01-31T09:00:00.000Z");

describe("the last use of a key", () => {
  it("is kept while the stream does not exist, which is logged once, and sent afterwards", async () => {
    const { note, failures } = startSending();
    note("a", firstUse);
    await eventually(() => failures.length > 0);
    await ensureUsage(manager, 1);
    expect(await eventually(newest)).toEqual({
      keys: [{ key_id: "a", used_at: "2027-01-31T09:00:00.000Z" }],
      environments: [],
      flags: [],
    });
    expect(failures).toHaveLength(1);
  });

  it("is sent at the end if the process stops before the next interval", async () => {
    await ensureUsage(manager, 1);
    const { note } = startSending();
    note("at-the-end", firstUse);
    await stop();
    expect((await newest()).keys).toMatchObject([{ key_id: "at-the-end" }]);
  });

  it("is sent in several messages if there are very many keys", async () => {
    await ensureUsage(manager, 1);
    await manager.streams.purge(usageStream.name);
    const { note } = startSending();
    for (let index = 0; index < 1_001; index += 1) note(`k${index}`, firstUse);
    await eventually(async () => (await countMessages()) === 2);
    expect((await newest()).keys).toMatchObject([{ key_id: "k1000" }]);
  });

  it("is kept while management reads nothing, which is logged once, and sent afterwards", async () => {
    await ensureUsage(manager, 1);
    await manager.streams.purge(usageStream.name);
    const { note, failures } = startSending();
    const waiting = Array.from({ length: 50 }, () =>
      jetstream(connection).publish(usageStream.lastSeen.subject, "waits"),
    );
    await Promise.all(waiting);
    const requests = countRequests();
    note("kept", firstUse);
    await eventually(() => requests() >= 2);
    expect(failures).toHaveLength(1);
    expect(await countMessages()).toBe(50);
    await manager.streams.purge(usageStream.name);
    expect((await eventually(newest)).keys).toMatchObject([{ key_id: "kept" }]);
  });

  it("is sent even if many messages of edges wait", async () => {
    await ensureUsage(manager, 1);
    await manager.streams.purge(usageStream.name);
    const counts = Array.from({ length: 60 }, () =>
      jetstream(connection).publish(usageStream.recorded.subject, "counts"),
    );
    await Promise.all(counts);
    const { note } = startSending();
    note("sent", firstUse);
    expect((await eventually(newest)).keys).toMatchObject([{ key_id: "sent" }]);
  });
});
