import { auditStream } from "@halyard/contracts";
import { streamPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import type { Logger } from "pino";
import {
  deleteRows,
  listSent,
  listUnsent,
  markLost,
  markSent,
  type UnsentRow,
} from "./outbox-rows.ts";
import { decideSent, readHandled } from "./settle-sent.ts";

/**
 * Publishes the changes of the outbox, oldest first. A row is deleted when management has acknowledged its message, and
 * published again when the broker has lost it. So the outbox is as long as an outage of NATS or management.
 *
 * A process that dies between the two steps publishes a message again, as do two replicas at the same time: management
 * inserts the entry once, under the id of the message.
 */
const pollIntervalMs = 1_000;
/** Some hundred KB. */
const batchSize = 100;
/** The broker answers in milliseconds; after this time it counts as unavailable. */
const acknowledgementTimeoutMs = 2_000;

type Options = { sql: Sql; client: JetStreamClient; logger: Logger };

export function startPublishingAudit(options: Options): { stop(): Promise<void> } {
  const { sql, client, logger } = options;
  let isFailing = false;
  const work = async (signal: AbortSignal) => {
    const unsent = await listUnsent(sql, batchSize);
    const sent = await listSent(sql, batchSize);
    if (unsent.length + sent.length > 0) {
      const manager = await client.jetstreamManager(false);
      await publish(options, manager, unsent, signal);
      const { handled, lost } = decideSent(sent, await readHandled(manager));
      await deleteRows(sql, handled);
      await markLost(sql, lost);
    }
    isFailing = false;
  };
  return startInterval(work, {
    intervalMs: pollIntervalMs,
    beginsAtOnce: true,
    // Every failure is expected: none may end a process that delivers webhooks or sends due changes.
    isExpected: () => true,
    onFailure(err) {
      if (!isFailing) logger.warn({ err }, "changes for the audit log are not published yet");
      isFailing = true;
    },
  });
}

async function publish(
  { sql, client }: Options,
  manager: JetStreamManager,
  rows: readonly UnsentRow[],
  signal: AbortSignal,
): Promise<void> {
  const position = await streamPosition(manager, auditStream.name);
  if (position === undefined) throw new Error(`The stream ${auditStream.name} does not exist.`);
  for (const { id, message, wasLost } of rows) {
    if (signal.aborted) return;
    const { seq } = await client.publish(auditStream.recorded.subject, JSON.stringify(message), {
      // The broker drops a message whose id it has seen, also when it has lost the first one.
      ...(wasLost ? {} : { msgID: id }),
      timeout: acknowledgementTimeoutMs,
      retries: 0,
    });
    await markSent(sql, { id, streamCreatedAt: position.createdAt, sequence: seq });
  }
}
