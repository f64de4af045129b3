import { startPublishingAudit } from "@halyard/audit-outbox";
import type { Consumption, SignMessage, VerifyMessage } from "@halyard/jetstream";
import {
  startWorkers as startSnapshotWorkers,
  type WorkerOptions,
} from "@halyard/server-key-service";
import { consumeEvents } from "./events/consume-events.ts";
import { deleteWebhooksOf } from "./webhooks/webhook-store.ts";

/**
 * Starts the background workers that need NATS: they follow the API keys, consume events, and publish audit entries and
 * the last use of keys. Existing deliveries are sent without NATS.
 */
export function startWorkers(
  options: WorkerOptions & {
    sign: SignMessage;
    verify: VerifyMessage;
    newId: () => string;
    /** Called when new deliveries are due. */
    onDeliveries: () => void;
  },
) {
  const { sql, deletions, sign, logger } = options;
  let events: Consumption | undefined;
  const workers = startSnapshotWorkers({
    ...options,
    service: "webhook-dispatcher",
    remove: (beforeMs, mayContinue) =>
      deleteWebhooksOf(sql, deletions.before("project", beforeMs), { ...options, mayContinue }),
    begin(connection, client) {
      events = consumeEvents({ ...options, connection });
      const audit = startPublishingAudit({ sql, client, sign, logger });
      return { parts: [], stops: [audit.stop, events.stop] };
    },
  });
  return {
    ...workers,
    details: () => ({
      ...workers.details(),
      events: events?.isRunning() ? "consumed" : "left",
    }),
  };
}
