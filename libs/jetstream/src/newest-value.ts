import { setTimeout as delay } from "node:timers/promises";
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
  const request = () =>
    manager.direct.getMessage(streamName, { last_by_subj: subjectPrefix + key });
  const message = await firstResponse(request).catch((error: unknown) => {
    if (error instanceof errors.RequestError && error.isNoResponders()) return null;
    throw error;
  });
  if (message === null) return undefined;
  const checked = check(parseJson(message.data));
  return checked.ok ? { value: checked.value, sequence: message.seq } : undefined;
}

const repeatAfterMs = 300;
const maxRequests = 5;

/**
 * Repeats a request until one has a response. Any replica may receive a direct get, also one that can no longer be
 * reached, until its cluster detects the loss after minutes.
 */
async function firstResponse<Response>(request: () => Promise<Response>): Promise<Response> {
  const requests = [request()];
  while (requests.length < maxRequests) {
    const none = delay(repeatAfterMs, undefined, { ref: false });
    const first = await Promise.race([...requests, none]);
    if (first !== undefined) return first;
    requests.push(request());
  }
  return Promise.race(requests);
}
