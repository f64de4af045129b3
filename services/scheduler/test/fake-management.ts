import { type ScheduleDue, type ScheduleResolved, scheduleStream } from "@halyard/contracts";
import {
  connectNats,
  consumeQueue,
  createQueueMetrics,
  isBrokerUnavailable,
  publishSigned,
} from "@halyard/jetstream";
import { createMetrics } from "@halyard/service";
import { natsLogin, testMessageSigner, testMessageVerifier } from "@halyard/testing";
import { jetstream } from "@nats-io/jetstream";
import { pino } from "pino";

/**
 * A fake management service. It consumes due changes from the queue, records them, and publishes the outcomes
 * that a test chooses. Like management, it makes each change once even if the message is repeated.
 */
type FakeManagement = {
  /** All changes that were made, in order. */
  made: readonly (ScheduleDue & { madeAtMs: number })[];
  /** All received messages, including repetitions. */
  received: readonly ScheduleDue[];
  stop(): Promise<void>;
};

export type Behavior = {
  /** Runs before a change is made and can delay it. */
  before?: (due: ScheduleDue) => Promise<void>;
  outcome?: (due: ScheduleDue) => Partial<ScheduleResolved>;
  /** Returns false to withhold the outcome from the scheduler. */
  publishesOutcome?: () => boolean;
};

export async function startFakeManagement(
  natsUrl: string,
  behavior: () => Behavior = () => ({}),
): Promise<FakeManagement> {
  const logger = pino({ level: "silent" });
  const connection = await connectNats({
    nats: natsLogin("management", natsUrl),
    name: "management",
    logger,
  });
  const client = jetstream(connection);
  const received: ScheduleDue[] = [];
  const made = new Map<string, ScheduleDue & { madeAtMs: number }>();
  const consumption = consumeQueue({
    connection,
    stream: scheduleStream.name,
    consumer: scheduleStream.due.consumer,
    subject: scheduleStream.due.subject,
    concurrency: 8,
    verify: testMessageVerifier,
    async handle({ payload }) {
      const due = JSON.parse(Buffer.from(payload).toString()) as ScheduleDue;
      received.push(due);
      const { before, outcome, publishesOutcome } = behavior();
      await before?.(due);
      if (!made.has(due.id)) made.set(due.id, { ...due, madeAtMs: performance.now() });
      if (publishesOutcome?.() === false) return "done";
      const resolved: ScheduleResolved = {
        id: due.id,
        schedule_id: due.schedule_id,
        outcome: "applied",
        applied_at: new Date().toISOString(),
        reason: null,
        ...outcome?.(due),
      };
      await publishSigned(client, testMessageSigner("management"), {
        subject: scheduleStream.resolved.subject,
        payload: JSON.stringify(resolved),
      });
      return "done";
    },
    isOutage: isBrokerUnavailable,
    metrics: createQueueMetrics(createMetrics({ service: "test" })),
    logger,
  });
  return {
    received,
    get made() {
      return [...made.values()];
    },
    stop: async () => {
      await consumption.stop();
      await connection.close();
    },
  };
}
