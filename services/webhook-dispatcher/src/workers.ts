import { followDirectory, type KeyDirectory, type LastUsed, sendLastUsed } from "@halyard/api-keys";
import { startPublishingAudit } from "@halyard/audit-outbox";
import {
  type Consumption,
  connectNats,
  type FollowedSnapshot,
  type NatsServers,
  removeOfDeletedScopes,
  trackProblem,
} from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { onceConnected } from "@halyard/service";
import { jetstream } from "@nats-io/jetstream";
import type { Logger } from "pino";
import type { Registry } from "prom-client";
import { consumeEvents } from "./events/consume-events.ts";
import { deleteWebhooksOf } from "./webhooks/webhook-store.ts";

/**
 * The background workers that need NATS: they follow the API keys, consume events, and publish audit entries and the
 * last use of keys. They start as soon as NATS is available. Existing deliveries are sent without NATS.
 */
export type Workers = {
  /** Returns whether the keys have been read at least once. */
  keysAreLoaded(): boolean;
  details(): {
    nats: "connected" | "away";
    nats_problem?: string | undefined;
    events: "consumed" | "left";
  };
  stop(): Promise<void>;
};

export function startWorkers(options: {
  nats: NatsServers;
  sql: Sql;
  keys: KeyDirectory;
  lastUsed: LastUsed;
  newId: () => string;
  /** Called when new deliveries are due. */
  onDeliveries: () => void;
  metrics: Registry;
  logger: Logger;
}): Workers {
  const { sql, newId, logger } = options;
  let keysAreLoaded = false;
  let followed: FollowedSnapshot | undefined;
  let events: Consumption | undefined;

  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "webhook-dispatcher", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    const monotonicMs = () => performance.now();
    const deletedProjects = removeOfDeletedScopes({
      kind: "project",
      settledRevision: async () => followed?.settledRevision(),
      remove: (projectIds, mayContinue) =>
        deleteWebhooksOf(sql, projectIds, { newId, mayContinue }),
      isOutage,
      monotonicMs,
      logger,
    });
    followed = followDirectory({
      connection,
      keys: options.keys,
      parts: [deletedProjects],
      onCurrent: () => {
        keysAreLoaded = true;
      },
      logger,
    });
    events = consumeEvents({ ...options, connection });
    const client = jetstream(connection);
    const lastUsedSender = sendLastUsed({ ...options, client, monotonicMs });
    const audit = startPublishingAudit({ sql, client, logger });
    return [audit, lastUsedSender, followed, deletedProjects, events].map(({ stop }) => stop);
  });

  return {
    keysAreLoaded: () => keysAreLoaded,
    details: () => ({
      nats: followed?.isCurrent() ? "connected" : "away",
      nats_problem: problem(),
      events: events?.isRunning() ? "consumed" : "left",
    }),
    stop: working.stop,
  };
}
