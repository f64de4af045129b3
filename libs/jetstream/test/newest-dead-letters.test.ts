import { deadLetterStream } from "@halyard/contracts";
import { connectNats, createDeadLetterReader, type DeadLetters } from "@halyard/jetstream";
import { natsLogin, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers, type NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { ensureDeadLetters } from "../src/streams.ts";

/** Management reads the newest dead letters with its own rights. */
let nats: TestNats;
let operator: NatsConnection;
let manager: JetStreamManager;
let management: NatsConnection;
let read: () => Promise<DeadLetters>;

beforeAll(async () => {
  nats = await startTestNats();
  operator = await connect({ servers: nats.url });
  manager = await jetstreamManager(operator);
  const login = natsLogin("management", nats.url);
  const logger = pino({ level: "silent" });
  management = await connectNats({ nats: login, name: "management", logger });
  const own = await jetstreamManager(management, { checkAPI: false });
  read = createDeadLetterReader({ connection: management, manager: own });
});
afterAll(async () => {
  await management.close();
  await operator.close();
  await nats.stop();
});

async function publish(subject: string, reason: string): Promise<void> {
  const about = headers();
  about.set("Halyard-Reason", reason);
  const to = deadLetterStream.subjectPrefix + subject;
  await jetstream(operator).publish(to, "content", { headers: about });
}

const reasonsIn = ({ newest }: DeadLetters) => newest.map(({ reason }) => reason);

describe("the newest dead letters", () => {
  it("are none before the stream exists and while it is empty", async () => {
    expect(await read()).toEqual({ count: 0, newest: [] });
    await ensureDeadLetters(manager, 1);
    expect(await read()).toEqual({ count: 0, newest: [] });
  });

  it("have subject, shortened reason and time, and are the last twenty", async () => {
    const start = Date.now();
    for (let at = 1; at <= 24; at += 1) await publish("usage.recorded", `reason ${at}`);
    await publish("schedule.due", "x".repeat(5_000));
    const found = await read();
    expect(found.count).toBe(25);
    expect(found.newest).toHaveLength(20);
    const [newest] = found.newest;
    expect(newest).toMatchObject({ subject: "schedule.due", reason: "x".repeat(200) });
    // The broker's clock may be a little behind.
    expect(newest?.at.getTime()).toBeGreaterThan(start - 1_000);
    expect(reasonsIn(found).slice(1, 3)).toEqual(["reason 24", "reason 23"]);
  });

  it("leave out messages that a person removed, even the last ones", async () => {
    for (const sequence of [20, 24, 25]) await manager.streams.deleteMessage("SET_ASIDE", sequence);
    const found = await read();
    expect(found.count).toBe(22);
    expect(reasonsIn(found)).toHaveLength(20);
    expect(reasonsIn(found).slice(0, 5)).toEqual([23, 22, 21, 19, 18].map((at) => `reason ${at}`));
  });
});
