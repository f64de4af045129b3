import { randomUUID } from "node:crypto";
import { createKeyDirectory, createKeySignatures } from "@halyard/api-keys";
import { natsServers } from "@halyard/configuration";
import {
  createLogger,
  createMetrics,
  type Logger,
  runService,
  startOrExit,
} from "@halyard/service";
import { startTracing } from "@halyard/tracing";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";
import { openSlots } from "./admission/open-slots.ts";
import { createEdge } from "./app.ts";
import { type Config, readConfig } from "./config.ts";
import { openNatsConnection } from "./nats-connection.ts";
import { createDiskCache } from "./snapshot/disk-cache.ts";
import { followNats } from "./snapshot/follow-nats.ts";
import { createPace, createSnapshotHolder } from "./snapshot/snapshot-holder.ts";
import { createPublishReport } from "./usage/publish-report.ts";
import { startUsage } from "./usage/start-usage.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "sdk-edge";
  await startTracing(service, config);
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const registry = createMetrics({ service });
  const connection = openNatsConnection({ nats: natsServers(config), metrics: registry, logger });
  const id = randomUUID();
  const snapshot = openSnapshot({
    config,
    connection: connection.ready,
    edge: id,
    registry,
    logger,
  });
  const { holder, cache, nats } = snapshot;
  const usage = startUsage({
    connection: connection.ready,
    holder,
    registry,
    logger,
  });
  const slots = openSlots({
    connection: connection.ready,
    edge: id,
    holder,
    registry,
    logger,
  });
  const edge = createEdge({
    ...snapshot,
    logger,
    registry,
    trustedProxies: config.TRUSTED_PROXIES,
    rejectedEntries: nats.rejectedEntries,
    streamTokenSecret: config.STREAM_TOKEN_SECRET,
    operatorTokenDigest: config.OPERATOR_TOKEN_DIGEST,
    invalidKeyRate: {
      requestsPerSecond: config.INVALID_KEYS_PER_SECOND,
      burst: config.INVALID_KEYS_BURST,
    },
    requestsPerSecond: config.SDK_REQUESTS_PER_SECOND,
    reportsPerSecond: config.USAGE_REPORTS_PER_SECOND,
    usage: usage.usage,
    slots,
    publishReport: createPublishReport({ connection: connection.ready, logger }),
    now: Date.now,
    random: Math.random,
  });

  await runService({
    config,
    logger,
    app: edge.app,
    metrics: registry,
    readiness: () => ({ ...edge.readiness(), nats_problem: connection.problem() }),
    drain: edge.drain,
    // Called from last to first: when all streams have ended, the other edges forget them and the counted usage is sent.
    close: [
      async () => cache?.close(),
      connection.close,
      nats.stop,
      usage.stop,
      slots.stop,
      edge.close,
    ],
  });
});

/** Opens the snapshot, which follows NATS, together with the key directory and the cache on disk. */
function openSnapshot({
  config,
  connection,
  edge,
  registry,
  logger,
}: {
  config: Config;
  connection: Promise<NatsConnection>;
  /** Identifies this process. */
  edge: string;
  registry: Registry;
  logger: Logger;
}) {
  const now = Date.now;
  const pace = createPace(() => performance.now());
  const holder = createSnapshotHolder({ now, pace });
  const signatures = createKeySignatures({
    publicKeys: config.SIGNING_PUBLIC_KEYS,
    metrics: registry,
    logger,
  });
  const { trusts } = signatures;
  const directory = createKeyDirectory(signatures);
  const file = config.SNAPSHOT_CACHE_FILE;
  const cache =
    file === undefined ? undefined : createDiskCache({ file, holder, trusts, logger, now });
  const nats = followNats({ connection, edge, holder, cache, keys: directory, logger });
  return { pace, holder, directory, cache, nats };
}
