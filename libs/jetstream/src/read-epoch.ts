import { checkCompleteEntry, completeKey, snapshotBucket } from "@halyard/contracts";
import type { JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { parseJson } from "./parse-json.ts";

/** The bucket gives no answer: it is not there, or not ready yet. */
export class SnapshotAwayError extends Error {
  override name = "SnapshotAwayError";
}

/**
 * The epoch that the bucket declares complete; undefined while it declares none.
 *
 * It is asked of the stream itself ("direct get"). The older request goes through the server's API,
 * and nats-server 2.9 crashes when that one meets a stream that is just being made.
 */
export async function readEpoch(manager: JetStreamManager): Promise<string | undefined> {
  const subject = snapshotBucket.subjectPrefix + completeKey;
  const message = await manager.direct
    .getMessage(snapshotBucket.streamName, { last_by_subj: subject })
    .catch((error: unknown) => {
      if (error instanceof errors.RequestError && error.isNoResponders())
        throw new SnapshotAwayError("the snapshot is not there", { cause: error });
      throw error;
    });
  if (message === null) return undefined;
  const checked = checkCompleteEntry(parseJson(message.data));
  return checked.ok ? checked.value.epoch : undefined;
}
