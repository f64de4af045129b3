import type { JetStreamManager } from "@nats-io/jetstream";
import { errors } from "@nats-io/transport-node";
import { parseJson } from "./parse-json.ts";

/**
 * Returns the newest value of a key in a bucket, and its sequence; undefined without the bucket or a valid value.
 *
 * It sends a direct get to the stream. The older request through the server's API crashes nats-server 2.9 if the stream
 * is being created.
 */
export async function findNewest<Value>(
  manager: JetStreamManager,
  { streamName, subjectPrefix }: { streamName: string; subjectPrefix: string },
  {
    key,
    check,
  }: { key: string; check: (value: unknown) => { ok: true; value: Value } | { ok: false } },
): Promise<{ value: Value; sequence: number } | undefined> {
  const message = await manager.direct
    .getMessage(streamName, { last_by_subj: subjectPrefix + key })
    .catch((error: unknown) => {
      if (error instanceof errors.RequestError && error.isNoResponders()) return null;
      throw error;
    });
  if (message === null) return undefined;
  const checked = check(parseJson(message.data));
  return checked.ok ? { value: checked.value, sequence: message.seq } : undefined;
}
