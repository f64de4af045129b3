import type { ServerResponse } from "node:http";
import type { EnvironmentView } from "../environment/environment-view.ts";
import { corsHeaders } from "./cors.ts";
import { namesTag } from "./entity-tag.ts";

/**
 * The answer with the values of all flags. All of it but the request's id is the same for everybody
 * who asks, so its headers are a list that is made once for each view and handed to Node as it is.
 */
type Heads = { whole: string[]; notModified: string[] };

/** Where the request's id stands in the lists. Node copies a list before `writeHead` returns. */
const requestIdAt = 1;

const headsOfViews = new WeakMap<EnvironmentView, Heads>();

/** What an answer about flags depends on beside its address, and who may keep it: its reader alone. */
export const sdkCacheControl = "private, no-cache";
export const sdkVary = "Authorization";

function headsOf(view: EnvironmentView): Heads {
  let heads = headsOfViews.get(view);
  if (heads === undefined) {
    const notModified = [
      "X-Request-Id",
      "",
      "ETag",
      view.etag,
      "Cache-Control",
      sdkCacheControl,
      "Vary",
      sdkVary,
      ...corsHeaders,
    ];
    const contentHeaders = [
      "Content-Type",
      "application/json; charset=utf-8",
      "Content-Length",
      String(view.body.length),
    ];
    heads = { whole: [...notModified, ...contentHeaders], notModified };
    headsOfViews.set(view, heads);
  }
  return heads;
}

/** Answers 200 with the values, or 304 to a client that has them. Answers which of the two it was. */
export function answerFlags(
  response: ServerResponse,
  view: EnvironmentView,
  request: { id: string; ifNoneMatch: string | undefined },
): 200 | 304 {
  const heads = headsOf(view);
  if (request.ifNoneMatch !== undefined && namesTag(request.ifNoneMatch, view.etag)) {
    heads.notModified[requestIdAt] = request.id;
    response.writeHead(304, heads.notModified);
    response.end();
    return 304;
  }
  heads.whole[requestIdAt] = request.id;
  response.writeHead(200, heads.whole);
  response.end(view.body, "latin1");
  return 200;
}
