import type { IncomingHttpHeaders } from "node:http";
import { bearerToken, type DirectoryKey, type KeyDirectory } from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { StreamHub } from "../streams/stream-hub.ts";
import type { AnswerCounts } from "./answer-counts.ts";
import { corsHeaders } from "./cors.ts";
import { answerFlags } from "./flags-answer.ts";
import type { Exchange } from "./raw-route.ts";

/** What every way to answer an SDK request needs. */
export type SdkParts = {
  directory: KeyDirectory;
  views: EnvironmentViews;
  hub: StreamHub;
  counts: AnswerCounts;
  /** Whether there is a snapshot to answer from. */
  hasSnapshot: () => boolean;
  isDraining: () => boolean;
  now: () => number;
};

/** The key that a request came with, if it is one of ours and works. */
export function keyOf(parts: SdkParts, headers: IncomingHttpHeaders): DirectoryKey | undefined {
  const token = bearerToken(headers.authorization);
  return token === undefined ? undefined : parts.directory.verify(token, parts.now());
}

/** Who is asking, or why nobody can be answered. */
export function authenticate(
  parts: SdkParts,
  headers: IncomingHttpHeaders,
): DirectoryKey | Refusal {
  if (!parts.hasSnapshot())
    return refuse("SERVER_002", "This edge has not received the flags yet; try again");
  return keyOf(parts, headers) ?? refuse("AUTH_001", "A valid API key is needed");
}

export function respondWithFlags(parts: SdkParts, key: DirectoryKey, exchange: Exchange): void {
  const { request, response, id } = exchange;
  const status = answerFlags(response, parts.views.of(key.environmentId), {
    id,
    ifNoneMatch: request.headers["if-none-match"],
  });
  parts.counts.flags[status] += 1;
}

export function respondWithStream(parts: SdkParts, key: DirectoryKey, exchange: Exchange): void {
  const { request, response, id } = exchange;
  // Without chunks the bytes of an event are the same for everybody; the connection's end ends it.
  response.removeHeader("transfer-encoding");
  response.writeHead(200, ["X-Request-Id", id, ...streamHeaders]);
  const lastEventId = request.headers["last-event-id"];
  parts.hub.open(response, key, typeof lastEventId === "string" ? lastEventId : undefined);
  parts.counts.stream[200] += 1;
}

const streamHeaders = [
  "Content-Type",
  "text/event-stream",
  "Cache-Control",
  "no-store",
  "X-Accel-Buffering",
  "no",
  "Connection",
  "close",
  ...corsHeaders,
];
