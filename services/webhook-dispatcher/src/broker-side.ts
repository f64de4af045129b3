import { followDirectory, type KeyDirectory, type LastUsed, tellLastUsed } from "@halyard/api-keys";
import { startPublishingAudit } from "@halyard/audit-outbox";
import {
  connectNats,
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
import { deleteWebhooksOf } from "./webhooks/delete-webhooks-of.ts";

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
  const { logger } = options;
  let knowsKeys = false;
  let isCurrent = () => false;
  let settledRevision: () => Promise<number | undefined> = async () => undefined;
  let isConsuming = () => false;

  const { problem, onProblem } = trackProblem();
  const connecting = connectNats({ ...options, name: "webhook-dispatcher", onProblem });
  const working = onceConnected(connecting, async (connection) => {
    const deletedProjects = removeOfDeletedPlaces({
      kind: "project",
      settledRevision: () => settledRevision(),
      remove: (projectIds, mayGoOn) =>
        deleteWebhooksOf(options.sql, projectIds, { newId: options.newId, mayGoOn }),
      isOutage,
      monotonicMs: () => performance.now(),
      logger,
    });
    const followed = followDirectory({
      connection,
      keys: options.keys,
      parts: [deletedProjects],
      onCurrent: () => {
        knowsKeys = true;
      },
      logger,
    });
    const events = consumeEvents({ ...options, connection });
    isCurrent = followed.isCurrent;
    settledRevision = followed.settledRevision;
    isConsuming = events.isRunning;
    const client = jetstream(connection);
    const telling = tellLastUsed({
      ...options,
      client,
      monotonicMs: () => performance.now(),
    });
    const audit = startPublishingAudit({ ...options, client });
    return [audit.stop, telling.stop, followed.stop, deletedProjects.stop, events.stop];
  });

  return {
    knowsKeys: () => knowsKeys,
    details: () => ({
      nats: isCurrent() ? "connected" : "away",
      nats_problem: problem(),
      events: isConsuming() ? "consumed" : "left",
    }),
    stop: working.stop,
  };
}
