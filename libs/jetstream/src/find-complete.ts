import {
  type CompleteEntry,
  checkCompleteEntry,
  completeKey,
  snapshotBucket,
} from "@halyard/contracts";
import type { JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { parseJson } from "./parse-json.ts";

/**
 * Returns the entry `complete` of the snapshot and its sequence, which its signature covers; undefined while the
 * snapshot is missing or incomplete.
 *
 * The request goes to the stream itself ("direct get"). The older request goes through the server's API,
 * and nats-server 2.9 crashes when it meets a stream that is being created.
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
