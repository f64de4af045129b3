import { flagEventsStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { pause } from "@halyard/timing";
import { afterAll, beforeAll, describe, expect, it } from "@jest/globals";
import { jetstreamManager } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { openManagement, seedProject } from "../management-fixture.ts";

/** So small that a few events of an organization pass its share. */
const management = await openManagement({ flagEventsMaxBytes: 64 * 1024 });
const key = (await seedProject(management)).serverKey;
const connection = await connect({ servers: management.natsUrl });
afterAll(async () => {
  await connection.close();
  await management.close();
});

let flags = 0;
async function createFlag(): Promise<void> {
  const body = { key: `flag-${++flags}`, name: "A flag" };
  const answer = await management.call("/api/v1/flags", { method: "POST", key, body });
  expect(answer.status).toBe(201);
}

const unsentEvents = async () =>
  (await management.sql`select from outbox where stream = 'events' and sent_at is null`).count;

async function valuesOf(metric: string) {
  const found = await management.metrics.getSingleMetric(metric)?.get();
  return found?.values.map(({ labels, value }) => [labels.step, value]);
}

const incompleteWrites = () => valuesOf("halyard_writes_unconfirmed_total");

describe("given an organization whose events wait for webhook dispatchers", () => {
  beforeAll(async () => {
    const manager = await jetstreamManager(connection);
    await manager.consumers.add(flagEventsStream.name, {
      ...{ durable_name: flagEventsStream.webhookConsumer, ack_policy: "explicit" },
    });
    await eventually(async () => {
      await createFlag();
      return (await unsentEvents()) > 5;
    });
  });

  it("completes its writes when they are in effect", async () => {
    const before = await incompleteWrites();
    for (let writes = 0; writes < 3; writes += 1) await createFlag();
    expect(await incompleteWrites()).toEqual(before);
  });

  it("does not measure its events as a backlog", async () => {
    // The leader measures every second.
    await pause(2_000, new AbortController().signal);
    expect(await unsentEvents()).toBeGreaterThan(5);
    expect(await valuesOf("halyard_outbox_unsent_messages")).toEqual([[undefined, 0]]);
    expect(await valuesOf("halyard_outbox_oldest_message_age_seconds")).toEqual([[undefined, 0]]);
  });
});
