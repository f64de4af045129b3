import { randomUUID } from "node:crypto";
import { type Logger, releaseAll } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Registry } from "prom-client";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { createCounting } from "./counting.ts";
import { followQuota } from "./follow-quota.ts";
import { sendUsage } from "./send-usage.ts";
import type { Usage } from "./usage.ts";
import { registerUsageMetrics } from "./usage-metrics.ts";

/** Counting with both its ways to usage-metering. */
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
