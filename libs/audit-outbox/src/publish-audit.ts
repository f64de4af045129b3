import { auditStream } from "@halyard/contracts";
import { publishSigned, type SignMessage, streamPosition } from "@halyard/jetstream";
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

const pollIntervalMs = 1_000;
/** A batch has some hundred KB. */
const batchSize = 100;

type Options = { sql: Sql; client: JetStreamClient; sign: SignMessage; logger: Logger };

/**
 * Publishes the changes in the outbox, oldest first. A row is deleted when management has acknowledged its message, and
 * published again if the broker has lost it. The outbox therefore grows only during an outage of NATS or management.
 *
 * A message can be published twice, by a process that crashes before it marks the row, or by two replicas. Management
 * inserts the entry only once, with the id of the message.
 */
export function startPublishingAudit(options: Options): { stop(): Promise<void> } {
  const { sql, client, logger } = options;
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
  };
  return startInterval(work, {
    intervalMs: pollIntervalMs,
    beginsAtOnce: true,
    // Every failure is expected, because none may end a process that delivers webhooks or sends due changes.
    isExpected: () => true,
    onFailure(err, isRepeated) {
      if (!isRepeated)
        logger.warn({ err }, "changes for the audit log could not be published; retrying");
    },
  });
}

async function publish(
  { sql, client, sign }: Options,
  manager: JetStreamManager,
  rows: readonly UnsentRow[],
  signal: AbortSignal,
): Promise<void> {
  const position = await streamPosition(manager, auditStream.name);
  if (position === undefined) throw new Error(`The stream ${auditStream.name} does not exist.`);
  for (const { id, message, wasLost } of rows) {
    if (signal.aborted) return;
    // A lost message has no id, because the broker would drop a known id even if it lost the first message.
    const { seq } = await publishSigned(client, sign, {
      subject: auditStream.recorded.subject,
      payload: JSON.stringify(message),
      ...(wasLost ? {} : { messageId: id }),
    });
    await markSent(sql, { id, streamCreatedAt: position.createdAt, sequence: seq });
  }
}
