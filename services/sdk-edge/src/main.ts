import { randomUUID } from "node:crypto";
import { createKeyDirectory, createKeySignatures } from "@halyard/api-keys";
import {
  createLogger,
  createMetrics,
  natsServers,
  runService,
  startOrExit,
} from "@halyard/service";
import { createEdge } from "./app.ts";
import { readConfig } from "./config.ts";
import { openNatsConnection } from "./nats-connection.ts";
import { openSlots } from "./slots/lease-slots.ts";
import { createDiskCache } from "./snapshot/disk-cache.ts";
import { followNats } from "./snapshot/follow-nats.ts";
import { createPace } from "./snapshot/pace.ts";
import { createSnapshotHolder } from "./snapshot/snapshot-holder.ts";
import { startUsage } from "./usage/start-usage.ts";

await startOrExit(async () => {
  const config = readConfig();
  const service = "sdk-edge";
  const now = Date.now;
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const registry = createMetrics({ service });
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
  const connection = openNatsConnection({ nats: natsServers(config), metrics: registry, logger });
  const nats = followNats({
    connection: connection.ready,
    edge: randomUUID(),
    holder,
    cache,
    keys: directory,
    logger,
  });
  const usage = startUsage({
    connection: connection.ready,
    holder,
    registry,
    logger,
  });
  const slots = openSlots({
    connection: connection.ready,
    holder,
    registry,
    logger,
    random: Math.random,
  });
  const edge = createEdge({
    holder,
    directory,
    pace,
    cache,
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
    usage: usage.usage,
    slots,
    now,
    random: Math.random,
  });

  await runService({
    config,
    logger,
    app: edge.app,
    metrics: registry,
    readiness: () => ({ ...edge.readiness(), nats_problem: connection.problem() }),
    drain: edge.drain,
    // From the last to the first: when no stream is open any more, the slots are given back and what is
    // counted is sent.
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
