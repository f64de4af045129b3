import { createKeyDirectory } from "@halyard/api-keys";
import { connectNats } from "@halyard/jetstream";
import {
  eventually,
  natsLogin,
  openSnapshotBucket,
  type SnapshotBucket,
  startTestNats,
  type TestNats,
  testSignatures,
} from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it, jest } from "@jest/globals";
import type { NatsConnection } from "@nats-io/transport-node";
import { pino } from "pino";
import { type FollowedNats, followNats } from "../../src/snapshot/follow-nats.ts";
import { entryAt } from "../../src/snapshot/snapshot.ts";
import { createSnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { flagEntry, id } from "../builders.ts";

const logger = pino({ level: "silent" });
let nats: TestNats;
let bucket: SnapshotBucket;
let connection: NatsConnection;
let followed: FollowedNats | undefined;

beforeAll(async () => {
  nats = await startTestNats();
  bucket = await openSnapshotBucket(nats.url);
  connection = await connectNats({
    nats: natsLogin("sdk-edge", nats.url),
    name: "sdk-edge",
    logger,
  });
});
afterAll(async () => {
  await followed?.stop();
  await connection.close();
  await bucket.close();
  await nats.stop();
});

describe("given an edge that reads a rewritten snapshot", () => {
  it("keeps unchanged entries, and never collects all entries in a list", async () => {
    const flag = flagEntry();
    await bucket.rewrite([flag]);
    const holder = createSnapshotHolder({ now: Date.now, pace: { pauseMs: () => 0 } });
    const replace = jest.spyOn(holder, "replace");
    const connecting = Promise.resolve(connection);
    followed = followNats({
      connection: connecting,
      edge: id("user"),
      holder,
      cache: undefined,
      keys: createKeyDirectory(testSignatures()),
      logger,
    });
    const held = () => holder.snapshot && entryAt(holder.snapshot, flag.address)?.value;
    const before = await eventually(held);
    const { epoch } = holder.snapshot ?? {};

    await bucket.rewrite([flag]);
    await eventually(() => holder.snapshot?.epoch !== epoch);
    expect(held()).toBe(before);
    expect(replace).not.toHaveBeenCalled();
  });
});
