import { setTimeout as delay } from "node:timers/promises";
import { usageMessageId, usageStream } from "@halyard/contracts";
import { publishTraced } from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import { pause } from "@halyard/timing";
import { type JetStreamClient, jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Counting } from "./counting.ts";
import { cutMessages, type OutgoingUsage } from "./usage-messages.ts";

/**
 * Sends the counts to usage-metering, twice a second. The counts that were taken are sent in one message after another.
 * Each message is sent again, unchanged and with the same id, until the broker acknowledges it. Only then is the next
 * one created. New requests are counted meanwhile, and are sent when everything taken before has been acknowledged.
 * Even a long outage therefore causes no more messages than a moment. Nothing is counted twice, because usage-metering
 * recognizes a repeated message.
 *
 * The sequence numbers belong to one life of one edge, which has a new id at each start. A killed process loses its
 * unsent counts: those of the last half second, or of the current outage.
 */
export type UsageSender = {
  readonly figures: SenderFigures;
  /** Sends the remaining counts, and waits a few seconds for the acknowledgement. */
  stop(): Promise<void>;
};

type SenderFigures = { arrived: number; failed: number };

const sendIntervalMs = 500;
const retryDelayMs = 250;
/** Maximum time for the last messages, within the time that an edge has to stop. */
const maxFinalSendMs = 3_000;

export function sendUsage(options: {
  connection: Promise<NatsConnection>;
  counting: Counting;
  /** Identifies this life of this edge. */
  edge: string;
  logger: Logger;
}): UsageSender {
  const { counting, edge, logger } = options;
  const figures: SenderFigures = { arrived: 0, failed: 0 };
  const stopping = new AbortController();
  const givingUp = new AbortController();
  let nextSequence = 1;
  let running: Promise<void> | undefined;

  async function run(connection: NatsConnection): Promise<void> {
    const client = jetstream(connection);
    while (await pause(sendIntervalMs, stopping.signal)) await sendCounted(client);
    await sendCounted(client);
  }

  async function sendCounted(client: JetStreamClient): Promise<void> {
    const tally = counting.take();
    if (tally === undefined) return;
    for (const message of cutMessages(tally, { edge, firstSequence: nextSequence })) {
      nextSequence = message.sequence + 1;
      if (!(await deliver(message, client))) return;
    }
    counting.arrived();
  }

  /** Sends a message until it is acknowledged. Returns false if the process has no more time to retry. */
  async function deliver(message: OutgoingUsage, client: JetStreamClient): Promise<boolean> {
    const { sequence, payload } = message;
    const messageId = usageMessageId({ edge, sequence });
    const { subject } = usageStream.recorded;
    let isFirstFailure = true;
    while (!givingUp.signal.aborted) {
      try {
        await publishTraced(client, { subject, payload, messageId });
        figures.arrived += 1;
        return true;
      } catch (error) {
        // Any error is retried, because otherwise the counts would be lost.
        figures.failed += 1;
        if (isFirstFailure) logger.warn({ err: error }, "NATS did not acknowledge usage; retrying");
        isFirstFailure = false;
        await pause(retryDelayMs, givingUp.signal);
      }
    }
    return false;
  }

  void options.connection.then((connection) => {
    if (!stopping.signal.aborted) running = run(connection);
  });
  return {
    figures,
    async stop() {
      stopping.abort();
      // Without a connection, nothing can be sent.
      const isSent = running?.then(() => true) ?? false;
      const isLost = delay(maxFinalSendMs, false, { ref: false });
      if (await Promise.race([isSent, isLost])) return;
      givingUp.abort();
      counting.take();
      const { underWay } = counting.figures();
      if (underWay > 0) logger.warn({ requests: underWay }, "counted requests could not be sent");
    },
  };
}
