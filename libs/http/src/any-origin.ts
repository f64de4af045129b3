/**
 * Paths whose responses web pages of any origin may read. A page must set the API key itself, so a page of another site
 * without a key gains nothing.
 */
export const openPrefixes = ["/api/v1/sdk/", "/ofrep/"];

export function isOpenToAllOrigins(target: string): boolean {
  return openPrefixes.some((prefix) => target.startsWith(prefix));
}

/** Headers of every response below these paths. Errors have them too; otherwise a page could not read them. */
export const anyOriginHeaders: Readonly<Record<string, string>> = {
  "Access-Control-Allow-Origin": "*",
  "Access-Control-Expose-Headers": "ETag, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id",
};
