import {
  type CompleteEntry,
  checkCompleteEntry,
  completeKey,
  snapshotBucket,
} from "@halyard/contracts";
import { parseJson } from "@halyard/jetstream";
import type { JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";

/**
 * Returns the entry `complete` of the snapshot and its sequence, which its signature covers; undefined while the
 * snapshot is missing or incomplete.
 *
 * It sends a direct get to the stream. The older request through the server's API crashes nats-server 2.9 if the stream
 * is being created.
 */
export async function findComplete(
  manager: JetStreamManager,
): Promise<{ complete: CompleteEntry; sequence: number } | undefined> {
  const subject = snapshotBucket.subjectPrefix + completeKey;
  const message = await manager.direct
    .getMessage(snapshotBucket.streamName, { last_by_subj: subject })
    .catch((error: unknown) => {
      if (error instanceof errors.RequestError && error.isNoResponders()) return null;
      throw error;
    });
  if (message === null) return undefined;
  const checked = checkCompleteEntry(parseJson(message.data));
  return checked.ok ? { complete: checked.value, sequence: message.seq } : undefined;
}
