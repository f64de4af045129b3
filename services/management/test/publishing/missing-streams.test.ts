import {
  auditStream,
  evaluationsStream,
  flagEventsStream,
  quotaBucket,
  usageStream,
} from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { afterAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { openManagement } from "../management-fixture.ts";

const management = await openManagement();
const connection = await connect({ servers: management.natsUrl });
afterAll(async () => {
  await connection.close();
  await management.close();
});
const manager = await jetstreamManager(connection);

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
