import { setTimeout as delay } from "node:timers/promises";
import { usageMessageId, usageStream } from "@halyard/contracts";
import type { Logger } from "@halyard/service";
import { pause } from "@halyard/timing";
import { jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Counting } from "./counting.ts";
import { cutMessages, type OutgoingUsage } from "./usage-messages.ts";

/**
 * Sends what was counted to usage-metering, twice a second. What was taken is sent message by message;
 * each is sent again, unchanged and under the same id, until the broker has acknowledged it, and only
 * then the next one is made. Meanwhile new requests add up, and go out when all that was taken before
 * has arrived. So an outage, however long, makes no more messages than a moment does, and nothing is
 * counted twice: whoever counts knows a message that comes again.
 *
 * The numbers belong to one life of one edge, whose id is new at each start. What a process has not sent
 * when it is killed is lost: half a second's requests, or those of the outage that it did not survive.
 */
export type UsageSender = {
  readonly figures: SenderFigures;
  /** Sends what is left, and waits a few seconds for its arrival. */
  stop(): Promise<void>;
};

export type SenderFigures = { arrived: number; failed: number };

const sendIntervalMs = 500;
/** The broker answers in milliseconds; after this time it counts as away and the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;
const retryDelayMs = 250;
/** Within what an edge has for stopping, beside the streams that it sends elsewhere. */
const maxFarewellMs = 3_000;

export function sendUsage(options: {
  connection: Promise<NatsConnection>;
  counting: Counting;
  /** Names this life of this edge. */
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
    const publish = createPublish(connection);
    while (await pause(sendIntervalMs, stopping.signal)) await sendCounted(publish);
    await sendCounted(publish);
  }

  async function sendCounted(publish: Publish): Promise<void> {
    const tally = counting.take();
    if (tally === undefined) return;
    for (const message of cutMessages(tally, { edge, firstSequence: nextSequence })) {
      nextSequence = message.sequence + 1;
      if (!(await deliver(message, publish))) return;
    }
    counting.arrived();
  }

  /** False when the process has no more time to try. */
  async function deliver(message: OutgoingUsage, publish: Publish): Promise<boolean> {
    let isFirstFailure = true;
    while (!givingUp.signal.aborted) {
      try {
        await publish(message.payload, usageMessageId({ edge, sequence: message.sequence }));
        figures.arrived += 1;
        return true;
      } catch (error) {
        // Whatever it was, there is nothing better to do with what was counted than to try again.
        figures.failed += 1;
        if (isFirstFailure) logger.warn({ err: error }, "usage is not taken by NATS; it is kept");
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
      // Where there never was a connection nobody can be told.
      const isSent = running?.then(() => true) ?? false;
      const isLost = delay(maxFarewellMs, false, { ref: false });
      if (await Promise.race([isSent, isLost])) return;
      givingUp.abort();
      counting.take();
      const { underWay } = counting.figures();
      if (underWay > 0) logger.warn({ requests: underWay }, "counted requests could not be sent");
    },
  };
}

type Publish = (payload: string, messageId: string) => Promise<void>;

function createPublish(connection: NatsConnection): Publish {
  const client = jetstream(connection);
  return async (payload, messageId) => {
    await client.publish(usageStream.recorded.subject, payload, {
      msgID: messageId,
      timeout: acknowledgementTimeoutMs,
      retries: 0,
    });
  };
}
