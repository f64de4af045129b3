import { snapshotBucket } from "@halyard/contracts";
import { Kvm } from "@nats-io/kv";
import { connect } from "@nats-io/transport-node";

/** The baseline: watches the bucket until it has seen every entry, and stores none. */
const connection = await connect({ servers: process.env.NATS_URL ?? "" });
const bucket = await new Kvm(connection).open(snapshotBucket.bucket);
const watch = await bucket.watch();
let entries = 0;
for await (const entry of watch) {
  entries += 1;
  if (entry.delta === 0) break;
}
process.on("disconnect", () => process.exit());
process.on("SIGTERM", () => process.exit());
process.send?.({ entries });
