import { type Called, type CallOptions, call, openEventStream } from "@halyard/testing";
import type { EdgeServer } from "../../edge-server.ts";

/** Secret for the stream tokens of the tests. */
export const tokenSecret = "what the tokens of the tests are signed with";

/** Requests all flags, like an OpenFeature provider. */
export function askAll(
  edge: EdgeServer,
  key: string,
  context?: object,
  options: CallOptions & { query?: string } = {},
): Promise<Called> {
  const { query = "", ...others } = options;
  const body = context === undefined ? {} : { context };
  return call(`${edge.url}/ofrep/v1/evaluate/flags${query}`, {
    method: "POST",
    key,
    body,
    ...others,
  });
}

/** Requests one flag, like an OpenFeature provider. */
export function askOne(
  edge: EdgeServer,
  key: string,
  flagKey: string,
  body: unknown = {},
): Promise<Called> {
  return call(`${edge.url}/ofrep/v1/evaluate/flags/${flagKey}`, { method: "POST", key, body });
}

/** Returns the URL of the stream that the edge offers to a client with this key. */
export async function streamAddress(edge: EdgeServer, key: string): Promise<string> {
  const { body } = await askAll(edge, key);
  return new URL(body.eventStreams[0].endpoint.requestUri, edge.url).href;
}

export async function listen(
  edge: EdgeServer,
  key: string,
  headers: Record<string, string> = {},
): ReturnType<typeof openEventStream> {
  return openEventStream(await streamAddress(edge, key), headers);
}
