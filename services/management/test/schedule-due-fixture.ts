import { randomUUID } from "node:crypto";
import {
  checkScheduleResolved,
  deadLetterStream,
  type ScheduleDue,
  type ScheduleResolved,
  scheduleStream,
} from "@halyard/contracts";
import {
  type Consumption,
  consumeQueue,
  createQueueMetrics,
  ensureSchedule,
  publishSigned,
} from "@halyard/jetstream";
import { eventually, testMessageSigner, testMessageVerifier } from "@halyard/testing";
import { type JetStreamManager, jetstream, jetstreamManager } from "@nats-io/jetstream";
import { connect, headers } from "@nats-io/transport-node";
import { pino } from "pino";
import { Registry } from "prom-client";
import type { Management, seedProject } from "./management-fixture.ts";

type Project = Awaited<ReturnType<typeof seedProject>>;

/** Creates a fake scheduler that sends due changes to management and receives their outcomes. */
export async function openScheduler(management: Management) {
  const connection = await connect({ servers: management.natsUrl });
  const manager = await jetstreamManager(connection);
  const client = jetstream(connection);
  await ensureSchedule(manager, 1);
  const received: ScheduleResolved[] = [];
  const listening = listen();

  function listen(): Consumption {
    return consumeQueue({
      connection,
      stream: scheduleStream.name,
      consumer: scheduleStream.resolved.consumer,
      subject: scheduleStream.resolved.subject,
      concurrency: 16,
      verify: testMessageVerifier,
      handle: async ({ payload }) => {
        const resolved = checkScheduleResolved(JSON.parse(new TextDecoder().decode(payload)));
        if (!resolved.ok) throw new Error(resolved.problem);
        received.push(resolved.value);
        return "done";
      },
      isOutage: () => false,
      metrics: createQueueMetrics(new Registry()),
      logger: pino({ level: "silent" }),
    });
  }

  /** Publishes a message with a new message id, so that the broker does not drop repetitions. */
  async function sendBytes(payload: string | Uint8Array): Promise<void> {
    const { subject } = scheduleStream.due;
    const message = { subject, payload: Buffer.from(payload).toString(), messageId: randomUUID() };
    await publishSigned(client, testMessageSigner("scheduler"), message);
  }

  /** Returns the dead letters with their reasons, oldest first. */
  async function deadLetters(): Promise<{ text: string; reason: string }[]> {
    const { state } = await manager.streams.info(deadLetterStream.name);
    if (state.messages === 0) return [];
    const reader = await client.consumers.get(deadLetterStream.name);
    const messages = await reader.fetch({ max_messages: state.messages, expires: 1_000 });
    const found: { text: string; reason: string }[] = [];
    for await (const message of messages)
      found.push({
        text: message.string(),
        reason: message.headers?.get("Halyard-Reason") ?? "",
      });
    return found;
  }

  const outcomesOf = (due: ScheduleDue) => received.filter(({ id }) => id === due.id);

  return {
    manager,
    received,
    sendBytes,
    deadLetters,
    /** Sends a due change with the signature of another service, of another change, or with none. */
    async sendForged(due: ScheduleDue, signature: string | undefined) {
      const signed = headers();
      if (signature !== undefined) signed.set("Halyard-Signature", signature);
      await client.publish(scheduleStream.due.subject, JSON.stringify(due), { headers: signed });
    },
    send: (due: ScheduleDue) => sendBytes(JSON.stringify(due)),
    outcomesOf,
    outcomeOf: (due: ScheduleDue) =>
      eventually(() => outcomesOf(due)[0], { because: "the change is resolved" }),
    /** Waits until the queue contains no messages in either direction. */
    queueIsEmpty: () =>
      eventually(async () => (await messagesIn(manager)) === 0, {
        because: "the queue is empty",
        withinMs: 30_000,
      }),
    close: async () => {
      await listening.stop();
      await connection.close();
    },
  };
}

async function messagesIn(manager: JetStreamManager): Promise<number> {
  return (await manager.streams.info(scheduleStream.name)).state.messages;
}

/** Returns a due change of a flag in the project. */
export function dueChange(
  project: Project,
  flag: { id: string },
  change: Partial<ScheduleDue> = {},
): ScheduleDue {
  return {
    id: randomUUID(),
    schedule_id: randomUUID(),
    organization_id: project.organizationId,
    project_id: project.projectId,
    flag_id: flag.id,
    environment_id: project.environmentId,
    action: "enable",
    due_at: new Date().toISOString(),
    user_id: project.userId,
    ...change,
  };
}
