import { type UsageLastSeen, usageStream } from "@halyard/contracts";
import { countWaiting, publishOnce } from "@halyard/jetstream";
import type { JetStreamClient } from "@nats-io/jetstream";

/**
 * Maximum number of messages that wait for management: those of some seconds, of a few megabytes. The edges publish to
 * the same stream and need room there while management is unavailable.
 */
const maxWaiting = 50;

/**
 * Publishes times of last use for management, unless too many messages wait; then the caller keeps them for later.
 * After an error the caller sends the message again. It needs no id, because the latest time wins and duplicates do no
 * harm.
 */
export async function publishLastSeen(
  client: JetStreamClient,
  message: UsageLastSeen,
): Promise<"taken" | "too many wait"> {
  const { subject, consumer } = usageStream.lastSeen;
  const manager = await client.jetstreamManager(false);
  const waiting = await countWaiting(manager, { stream: usageStream.name, subject, consumer });
  if (waiting >= maxWaiting) return "too many wait";
  await publishOnce(client, subject, JSON.stringify(message));
  return "taken";
}
