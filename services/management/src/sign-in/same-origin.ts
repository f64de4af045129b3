import type { IncomingHttpHeaders } from "node:http";

/**
 * Returns whether a request was sent by a page of this installation. Browsers send one of both headers with every
 * request that changes something; without both, the request is rejected.
 */
export function isSameOrigin({
  headers,
  publicUrl,
}: {
  headers: IncomingHttpHeaders;
  publicUrl: URL;
}) {
  const { origin, "sec-fetch-site": site } = headers;
  return origin === undefined ? site === "same-origin" : origin === publicUrl.origin;
}
