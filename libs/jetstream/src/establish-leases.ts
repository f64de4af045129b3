import { leaseKey, leasesBucket } from "@halyard/contracts";
import type { JetStreamClient, JetStreamManager } from "@nats-io/jetstream";
import { ensureLeases } from "./streams.ts";

/**
 * Creates the bucket of open streams and marks it as established. To be called in a new installation only:
 * edges then admit streams at once. They wait in a bucket that may have replaced a lost one.
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
