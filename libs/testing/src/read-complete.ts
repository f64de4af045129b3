import type { CompleteEntry } from "@halyard/contracts";
import { findComplete } from "@halyard/snapshot";
import type { JetStreamManager } from "@nats-io/jetstream";

/** Returns the epoch of the snapshot; undefined while it is missing or incomplete. */
export const readEpoch = async (manager: JetStreamManager): Promise<string | undefined> =>
  (await readComplete(manager))?.epoch;

/** Returns the entry `complete` of the snapshot; undefined while it is missing or incomplete. */
export async function readComplete(manager: JetStreamManager): Promise<CompleteEntry | undefined> {
  return (await findComplete(manager))?.complete;
}
