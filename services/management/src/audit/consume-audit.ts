import { type AuditRecorded, auditStream, checkAuditRecorded } from "@halyard/contracts";
import {
  type Consumption,
  consumeJson,
  type QueueMessage,
  type QueueMetrics,
  type Verdict,
  type VerifyMessage,
} from "@halyard/jetstream";
import { isOutage, type Sql, type Transaction } from "@halyard/postgres";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { serviceActor } from "../access/change-context.ts";
import { insertAuditEntries } from "./audit-store.ts";

/** One message at a time, so that the audit log keeps the order of the queue. */
const concurrency = 1;

/**
 * Inserts the audit entries of webhooks and schedules into the audit log. The id of an entry is the id of its message.
 * So a message that is delivered again, after a crash or to two replicas, adds nothing.
 */
export function consumeAudit(options: {
  connection: NatsConnection;
  sql: Sql;
  verify: VerifyMessage;
  metrics: QueueMetrics;
  logger: Logger;
}): Consumption {
  return consumeJson({
    ...options,
    stream: auditStream.name,
    consumer: auditStream.recorded.consumer,
    subject: auditStream.recorded.subject,
    concurrency,
    check: checkAuditRecorded,
    async handle(recorded, { writer }) {
      if (!isOfWriter(recorded, writer))
        return { deadLetter: "The change is of another service than the signature." };
      if (!hasSubject(recorded)) return { deadLetter: "The subject of the change is missing." };
      return options.sql.begin((tx) => insertRecorded(tx, recorded));
    },
    isOutage,
  });
}

/** Returns whether the service that signed the message is the one that owns the webhook or the schedule. */
function isOfWriter({ action, service }: AuditRecorded, writer: QueueMessage["writer"]): boolean {
  if (writer === undefined) return true;
  const owner = action.startsWith("webhook_") ? "webhook-dispatcher" : "scheduler";
  return writer === owner && service === writer;
}

function hasSubject(message: AuditRecorded): boolean {
  if (message.action.startsWith("webhook_")) return message.webhook_id !== null;
  return message.flag_id !== null && message.environment_id !== null;
}

async function insertRecorded(tx: Transaction, message: AuditRecorded): Promise<Verdict> {
  const known = await readKnown(tx, message);
  if (!known.isOfOrganization) return { deadLetter: "Unknown project." };
  const { user_id: userId } = message;
  await insertAuditEntries(tx, [
    {
      id: message.id,
      projectId: message.project_id,
      environmentId: message.environment_id,
      action: message.action,
      cause: "manual",
      actor: userId === null ? serviceActor(message.service) : { id: userId, email: known.email },
      apiKeyId: message.api_key_id,
      via: message.via ?? (message.api_key_id === null ? null : "key"),
      before: message.before,
      after: message.after,
      changedAt: new Date(message.changed_at),
      ...(message.webhook_id !== null && { webhookId: message.webhook_id }),
      ...(message.flag_id !== null && { flagId: message.flag_id }),
      ...(known.flagKey !== null && { flagKey: known.flagKey }),
    },
  ]);
  return "done";
}

/** The data that the message lacks. The e-mail address is empty if the user was deleted in the meantime. */
type Known = { isOfOrganization: boolean; email: string; flagKey: string | null };

async function readKnown(tx: Transaction, message: AuditRecorded): Promise<Known> {
  const { organization_id: organizationId, project_id: projectId, flag_id: flagId } = message;
  const [known] = await tx<[Known]>`
    select
      -- Includes deleted projects, because their webhooks are deleted after them.
      organization_of_project(${projectId}) is not distinct from ${organizationId}::uuid
        as "isOfOrganization",
      coalesce(
        (
          select email from users
          where id = ${message.user_id} and organization_id = ${organizationId}
          -- Delays an erasure of the address until the entry is committed.
          for key share
        ),
        ''
      ) as email,
      coalesce(
        (select key from flags where id = ${flagId} and project_id = ${projectId}),
        (
          select flag_key from changes
          where project_id = ${projectId} and flag_id = ${flagId} and flag_key is not null
          order by sequence desc
          limit 1
        )
      ) as "flagKey"`;
  return known;
}
