import { randomUUID } from "node:crypto";
import { quotaBucket } from "@halyard/contracts";
import {
  connectNats,
  deleteStream,
  ensureQuota,
  type FollowedStream,
  followBucket,
} from "@halyard/jetstream";
import { eventually, startTestNats, type TestNats } from "@halyard/testing";
import { afterAll, afterEach, beforeAll, beforeEach, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { type NatsConnection, TimeoutError } from "@nats-io/transport-node";
import { pino } from "pino";

/** A follower of a bucket on a real server. Tests can make single requests fail. */
let nats: TestNats;
let connection: NatsConnection;
let manager: JetStreamManager;
let followed: FollowedStream | undefined;
const logger = pino({ level: "silent" });

beforeAll(async () => {
  nats = await startTestNats();
  connection = await connectNats({ nats: { url: nats.url }, name: "test", logger });
  manager = await jetstreamManager(connection);
});
beforeEach(() => ensureQuota(manager, 1));
afterEach(async () => {
  await followed?.stop();
  await deleteStream(manager, quotaBucket.streamName);
});
afterAll(async () => {
  await connection?.close();
  await nats?.stop();
});

async function put(key: string): Promise<void> {
  await jetstream(connection).publish(quotaBucket.subjectPrefix + key, "value");
}

/** Returns a connection whose requests fail with the result of `onRequest`. Without a result, they reach the broker. */
function withRequests(onRequest: (subject: string) => Error | undefined): NatsConnection {
  return new Proxy(connection, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name !== "request") return member.bind(target);
      return (subject: string, ...rest: []) => {
        const failure = onRequest(subject);
        return failure ? Promise.reject(failure) : member.call(target, subject, ...rest);
      };
    },
  });
}

/** A connection that loses the first response to the creation of a consumer. */
function withLostCreation(): NatsConnection {
  let isLost = false;
  return new Proxy(connection, {
    get(target, name) {
      const member = Reflect.get(target, name);
      if (typeof member !== "function") return member;
      if (name !== "request") return member.bind(target);
      return async (subject: string, ...rest: []) => {
        const answer = await member.call(target, subject, ...rest);
        if (isLost || !subject.includes("CONSUMER.CREATE")) return answer;
        isLost = true;
        throw new TimeoutError();
      };
    },
  });
}

function follow(over: NatsConnection) {
  const seen = { begun: 0, keys: [] as string[] };
  followed = followBucket({
    connection: over,
    bucket: quotaBucket,
    filter: ">",
    onBegin() {
      seen.begun += 1;
    },
    onEntry: ({ key }) => void seen.keys.push(key),
    logger,
  });
  return { seen, isCurrent: followed.isCurrent };
}

describe("given a broker that temporarily does not return the identity of the bucket", () => {
  it("continues the same read, and later still detects that the bucket was created again", async () => {
    const silence = { isOn: false, requests: 0 };
    const { seen, isCurrent } = follow(
      withRequests((subject) => {
        if (!silence.isOn || !subject.includes("STREAM.INFO")) return undefined;
        silence.requests += 1;
        return new TimeoutError();
      }),
    );
    await eventually(isCurrent);
    silence.isOn = true;
    await eventually(() => silence.requests >= 2);
    expect(isCurrent()).toBe(true);
    const key = randomUUID();
    await put(key);
    await eventually(() => seen.keys.includes(key));
    expect(seen.begun).toBe(1);

    silence.isOn = false;
    await manager.streams.delete(quotaBucket.streamName);
    await ensureQuota(manager, 1);
    await eventually(() => seen.begun >= 2 && isCurrent());
  });
});

describe("given a broker that creates a consumer after the time-out", () => {
  it("deletes it before the next one is created", async () => {
    const { isCurrent } = follow(withLostCreation());
    await eventually(isCurrent);
    const consumers = await manager.consumers.list(quotaBucket.streamName).next();
    expect(consumers).toHaveLength(1);
  });
});

describe("given a bucket", () => {
  it("delivers its existing entries and then each new one, each once", async () => {
    await put("first");
    const { seen, isCurrent } = follow(connection);
    await eventually(isCurrent);
    await put("second");
    await eventually(() => seen.keys.length > 1);
    expect(seen.keys).toEqual(["first", "second"]);
  });

  it("can be stopped while the read starts", async () => {
    let stopped: Promise<void> | undefined;
    follow(
      withRequests((subject) => {
        if (subject.includes("CONSUMER.CREATE")) stopped ??= followed?.stop();
        return undefined;
      }),
    );
    await eventually(() => stopped !== undefined);
    await stopped;
    expect(followed?.isCurrent()).toBe(false);
  });
});
