import { followDirectory, type KeyDirectory, type LastUsed, tellLastUsed } from "@halyard/api-keys";
import { startPublishingAudit } from "@halyard/audit-outbox";
import {
  type Consumption,
  connectNats,
  type FollowedSnapshot,
  type NatsServers,
  removeOfDeletedPlaces,
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
 * Everything of this process that needs NATS: what it knows of keys, the events that it makes
 * deliveries of, and telling which keys were used. It comes up when NATS does; what is to be delivered already is sent all the same.
 */
export type BrokerSide = {
  /** Whether the keys were read once. */
  knowsKeys(): boolean;
  details(): {
    nats: "connected" | "away";
    nats_problem?: string | undefined;
    events: "consumed" | "left";
  };
  stop(): Promise<void>;
};

export function startBrokerSide(options: {
  nats: NatsServers;
  sql: Sql;
  keys: KeyDirectory;
  lastUsed: LastUsed;
  newId: () => string;
  /** Deliveries were made, which are due. */
  onDeliveries: () => void;
  metrics: Registry;
  logger: Logger;
}): BrokerSide {
  const { sql, newId, logger } = options;
  let knowsKeys = false;
  let followed: FollowedSnapshot | undefined;
  let events: Consumption | undefined;

  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "webhook-dispatcher", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    const monotonicMs = () => performance.now();
    const deletedProjects = removeOfDeletedPlaces({
      kind: "project",
      settledRevision: async () => followed?.settledRevision(),
      remove: (projectIds, mayGoOn) => deleteWebhooksOf(sql, projectIds, { newId, mayGoOn }),
      isOutage,
      monotonicMs,
      logger,
    });
    followed = followDirectory({
      connection,
      keys: options.keys,
      parts: [deletedProjects],
      onCurrent: () => {
        knowsKeys = true;
      },
      logger,
    });
    events = consumeEvents({ ...options, connection });
    const client = jetstream(connection);
    const telling = tellLastUsed({ ...options, client, monotonicMs });
    const audit = startPublishingAudit({ sql, client, logger });
    return [audit, telling, followed, deletedProjects, events].map(({ stop }) => stop);
  });

  return {
    knowsKeys: () => knowsKeys,
    details: () => ({
      nats: followed?.isCurrent() ? "connected" : "away",
      nats_problem: problem(),
      events: events?.isRunning() ? "consumed" : "left",
    }),
    stop: working.stop,
  };
}
