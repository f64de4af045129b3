import { type IncomingHttpHeaders, request } from "node:http";
import { buffer } from "node:stream/consumers";
import { type Called, type CallOptions, call, openEventStream } from "@halyard/testing";
import type { EdgeServer } from "../../edge-server.ts";

/** Requests the rules, like an SDK that polls. */
export function ask(edge: EdgeServer, key: string, options: CallOptions = {}): Promise<Called> {
  return call(`${edge.url}/api/v1/sdk/ruleset?format=2`, { key, ...options });
}

/** Opens a stream of rules, after an earlier one with this last event. */
export function listen(
  edge: EdgeServer,
  key: string,
  lastEventId?: string,
): ReturnType<typeof openEventStream> {
  return openEventStream(`${edge.url}/api/v1/sdk/ruleset/stream?format=2`, {
    authorization: `Bearer ${key}`,
    ...(lastEventId === undefined ? {} : { "last-event-id": lastEventId }),
  });
}

/** Requests the rules with a content coding, and returns the bytes as they were sent. */
export async function bytesOf(
  edge: EdgeServer,
  key: string,
  coding: string,
): Promise<{ headers: IncomingHttpHeaders; bytes: Buffer }> {
  const headers = { authorization: `Bearer ${key}`, "accept-encoding": coding };
  const outgoing = request(`${edge.url}/api/v1/sdk/ruleset?format=2`, {
    headers,
    agent: false,
  }).end();
  return new Promise((resolve, reject) => {
    outgoing.on("error", reject).on("response", (response) => {
      buffer(response).then((bytes) => resolve({ headers: response.headers, bytes }), reject);
    });
  });
}
