import { leaseKey, leasesBucket } from "@halyard/contracts";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { ensureLeases } from "./streams.ts";

/**
 * Creates the bucket of open streams and marks it as established, so that edges admit streams immediately. To
 * be called in a new installation only, because the mark says that the bucket did not replace a lost one.
 */
export async function establishLeases({
  client,
  manager,
  replicas,
}: {
  client: JetStreamClient;
  manager: JetStreamManager;
  replicas: number;
}): Promise<void> {
  await ensureLeases(manager, replicas);
  await client.publish(leasesBucket.subjectPrefix + leaseKey.established, "{}");
}
