import { randomUUID } from "node:crypto";
import { checkQuotaEntry, quotaBucket } from "@halyard/contracts";
import { type FollowedStream, followBucket, parseJson } from "@halyard/jetstream";
import { type Logger, releaseAll } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { type Counting, createCounting } from "./counting.ts";
import { sendUsage } from "./send-usage.ts";
import type { Usage } from "./usage.ts";
import { registerUsageMetrics } from "./usage-metrics.ts";

/** Starts the counting of usage, the messages to usage-metering, and the follower of the numbers that it publishes. */
export function startUsage(options: {
  connection: Promise<NatsConnection>;
  holder: SnapshotHolder;
  registry: Registry;
  logger: Logger;
}): { usage: Usage; stop(): Promise<void> } {
  const counting = createCounting(options);
  const quota = followQuota({ ...options, counting });
  const sender = sendUsage({ ...options, counting, edge: randomUUID() });
  registerUsageMetrics({ ...options, counting, sender, isQuotaCurrent: quota.isCurrent });
  return {
    usage: counting.usage,
    stop: () => releaseAll([quota.stop, sender.stop]),
  };
}

/** Follows the numbers that usage-metering publishes. Management creates the bucket, so it may not exist yet. */
function followQuota(options: {
  connection: Promise<NatsConnection>;
  counting: Counting;
  logger: Logger;
}) {
  const { counting, logger } = options;
  let followed: FollowedStream | undefined;
  let isStopped = false;

  void options.connection.then((connection) => {
    if (isStopped) return;
    followed = followBucket({
      ...{ connection, bucket: quotaBucket, filter: "*", logger },
      onEntry({ key, payload }) {
        const checked = checkQuotaEntry(parseJson(payload));
        if (checked.ok) counting.applyQuota(checked.value);
        else logger.error({ key, problem: checked.problem }, "a used month was left out");
      },
    });
  });

  return {
    isCurrent: () => followed?.isCurrent() === true,
    async stop() {
      isStopped = true;
      await followed?.stop();
    },
  };
}
