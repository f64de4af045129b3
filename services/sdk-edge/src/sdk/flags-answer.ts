import { cacheHeadersOf, sdkGetFlags } from "@halyard/contracts";
import { namesTag } from "@halyard/service";
import type { FlagValues } from "../environment/flag-values.ts";
import { commonHeaders } from "./common-headers.ts";
import type { Asked } from "./endpoint.ts";
import { taggedHeads } from "./tagged-heads.ts";

/** What an answer about flags depends on beside its address, and who may keep it: its reader alone. */
export const sdkHeaders: readonly string[] = Object.entries(cacheHeadersOf(sdkGetFlags)).flat();

/** Answers 200 with the values, or 304 to a client that has them. Answers which of the two it was. */
export function answerFlags(asked: Asked, { body, etag }: FlagValues): 200 | 304 {
  const { request, response } = asked;
  const ifNoneMatch = request.headers["if-none-match"];
  if (ifNoneMatch !== undefined && namesTag(ifNoneMatch, etag)) {
    response.writeHead(304, heads.notModified(asked, etag));
    response.end();
    return 304;
  }
  response.writeHead(200, heads.ok(asked, etag, body.length));
  response.end(body, "latin1");
  return 200;
}

const heads = taggedHeads([...sdkHeaders, ...commonHeaders]);
