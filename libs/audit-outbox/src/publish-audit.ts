import { type AuditRecorded, auditStream } from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { periodically } from "@halyard/service";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";

/**
 * Publishes the changes of the outbox, oldest first, and deletes each row when the broker has its message. A process
 * that dies in between publishes the message again, as do two replicas at the same time: management inserts the
 * entry once, under the id of the message. The outbox is as long as an outage of NATS.
 */
const lookEveryMs = 1_000;
/** Some hundred KB. */
const batchSize = 100;
/** The broker answers in milliseconds; after this time it counts as unavailable. */
const acknowledgementTimeoutMs = 2_000;

type Options = { sql: Sql; client: JetStreamClient; logger: Logger };

export function startPublishingAudit(options: Options): { stop(): Promise<void> } {
  const { logger } = options;
  let isFailing = false;
  const publish = async (mayGoOn: () => boolean) => {
    await publishAudit(options, mayGoOn);
    isFailing = false;
  };
  return periodically(lookEveryMs, publish, {
    beginsAtOnce: true,
    // Whatever the reason is: it must not end a process that delivers webhooks or sends due changes.
    isExpected: () => true,
    onFailure(err) {
      if (!isFailing) logger.warn({ err }, "changes for the audit log are not published yet");
      isFailing = true;
    },
  });
}

async function publishAudit(options: Options, mayGoOn: () => boolean): Promise<void> {
  const { sql, client } = options;
  for (let more = true; more && mayGoOn(); ) {
    const rows = await sql<{ id: string; message: AuditRecorded }[]>`
      select id, message from audit_outbox order by id limit ${batchSize}`;
    for (const { id, message } of rows) {
      await client.publish(auditStream.recorded.subject, JSON.stringify(message), {
        msgID: id,
        timeout: acknowledgementTimeoutMs,
        retries: 0,
      });
      await sql`delete from audit_outbox where id = ${id}`;
    }
    more = rows.length === batchSize;
  }
}
