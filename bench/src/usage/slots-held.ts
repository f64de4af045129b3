import { leaseKey, leasesBucket, type OrganizationStreams } from "@halyard/contracts";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";
import type { Bench } from "../benchmark.ts";
import type { Nats } from "../system/backends.ts";

/** Reads the number of slots of an organization's edges from the bucket `LEASES`. */
export async function openSlotsHeld(
  bench: Bench,
  nats: Nats,
): Promise<(organizationId: string) => Promise<number>> {
  const connection = await connect({ servers: nats.url });
  bench.afterwards(() => connection.close());
  return async (organizationId) => {
    const bucket = await new Kvm(connection).open(leasesBucket.bucket);
    const entry = await bucket.get(leaseKey.organization(organizationId));
    if (entry === null) return 0;
    const { holders } = entry.json<OrganizationStreams>();
    return Object.values(holders).reduce((sum, slots) => sum + slots, 0);
  };
}
