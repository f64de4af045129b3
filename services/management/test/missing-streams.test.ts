import {
  auditStream,
  evaluationsStream,
  flagEventsStream,
  quotaBucket,
  usageStream,
} from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { type Management, openManagement } from "./management-fixture.ts";

let management: Management;
let connection: NatsConnection;
let manager: JetStreamManager;

beforeAll(async () => {
  management = await openManagement();
  connection = await connect({ servers: management.natsUrl });
  manager = await jetstreamManager(connection);
});
afterAll(async () => {
  await connection?.close();
  await management?.close();
});

describe("management, as the only service that may create streams", () => {
  it.each([
    quotaBucket.streamName,
    usageStream.name,
    evaluationsStream.name,
    auditStream.name,
    flagEventsStream.name,
  ])("recreates %s after its deletion", async (name) => {
    const before = await eventually(() => manager.streams.info(name));
    await manager.streams.delete(name);
    const after = await eventually(() => manager.streams.info(name));
    expect(after.created).not.toBe(before.created);
  });
});
