import { randomUUID } from "node:crypto";
import { createKeyDirectory, createKeySignatures } from "@halyard/api-keys";
import { natsServers } from "@halyard/configuration";
import { createLogger, createMetrics, runService, startOrExit } from "@halyard/service";
import { createEdge } from "../../../services/sdk-edge/src/app.ts";
import { readConfig } from "../../../services/sdk-edge/src/config.ts";
import { openNatsConnection } from "../../../services/sdk-edge/src/nats-connection.ts";
import { followNats } from "../../../services/sdk-edge/src/snapshot/follow-nats.ts";
import {
  createPace,
  createSnapshotHolder,
} from "../../../services/sdk-edge/src/snapshot/snapshot-holder.ts";

/** An edge without metering and plan limits. */
await startOrExit(async () => {
  const config = readConfig();
  const service = "sdk-edge";
  const now = Date.now;
  const logger = createLogger({ service, level: config.LOG_LEVEL });
  const registry = createMetrics({ service });
  const pace = createPace(() => performance.now());
  const holder = createSnapshotHolder({ now, pace });
  const metrics = registry;
  const publicKeys = config.SIGNING_PUBLIC_KEYS;
  const directory = createKeyDirectory(createKeySignatures({ publicKeys, metrics, logger }));
  const connection = openNatsConnection({ nats: natsServers(config), metrics, logger });
  const nats = followNats({
    ...{ connection: connection.ready, edge: randomUUID(), cache: undefined },
    ...{ holder, keys: directory, logger },
  });
  const edge = createEdge({
    ...{ holder, directory, pace, logger, registry, now, random: Math.random },
    trustedProxies: config.TRUSTED_PROXIES,
    rejectedEntries: nats.rejectedEntries,
    streamTokenSecret: config.STREAM_TOKEN_SECRET,
    invalidKeyRate: {
      requestsPerSecond: config.INVALID_KEYS_PER_SECOND,
      burst: config.INVALID_KEYS_BURST,
    },
    requestsPerSecond: config.SDK_REQUESTS_PER_SECOND,
    reportsPerSecond: config.USAGE_REPORTS_PER_SECOND,
  });
  const { app, readiness, drain } = edge;
  const close = [connection.close, nats.stop, edge.close];
  await runService({ config, logger, app, metrics, readiness, drain, close });
});
