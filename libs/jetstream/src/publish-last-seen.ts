import { type UsageLastSeen, usageStream } from "@halyard/contracts";
import type { JetStreamClient } from "@nats-io/jetstream";
import { countWaiting } from "./work-queue.ts";

/** The broker answers in milliseconds; after this time it counts as away and the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

/**
 * So many messages may wait for management: some seconds' worth, and a few megabytes. The queue is shared
 * with what edges count, which goes on while management is away and must find room.
 */
const maxWaiting = 50;

/**
 * Tells management when something was last seen, unless it has much to read as it is: then nothing is
 * told, and the caller keeps it for later. Whoever does not hear that it was taken sends it again: the
 * latest instant wins, so repetitions do no harm and the message needs no id.
 */
export async function publishLastSeen(
  client: JetStreamClient,
  message: UsageLastSeen,
): Promise<"taken" | "too many wait"> {
  const { subject, consumer } = usageStream.lastSeen;
  const manager = await client.jetstreamManager(false);
  const waiting = await countWaiting(manager, { stream: usageStream.name, subject, consumer });
  if (waiting >= maxWaiting) return "too many wait";
  await client.publish(subject, JSON.stringify(message), {
    timeout: acknowledgementTimeoutMs,
    retries: 0,
  });
  return "taken";
}
