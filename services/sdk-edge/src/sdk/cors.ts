import type { IncomingMessage, ServerResponse } from "node:http";

/**
 * Web pages of any origin may ask for flags: the key is in a header that the page sets itself, so
 * there is nothing that a foreign page could use without knowing it. Errors carry these headers too,
 * or a page could not tell one error from another.
 */
const prefixes = ["/api/v1/sdk/", "/ofrep/"];

/** Whether a request is for something that pages of any origin may ask for. */
export function isOpenToAllOrigins(target: string): boolean {
  return prefixes.some((prefix) => target.startsWith(prefix));
}

const exposedHeaders = "ETag, Retry-After, RateLimit, RateLimit-Policy, X-Request-Id";

/** For every answer, as a flat list of names and values. */
export const corsHeaders: readonly string[] = [
  "Access-Control-Allow-Origin",
  "*",
  "Access-Control-Expose-Headers",
  exposedHeaders,
];

export function setCorsHeaders(response: ServerResponse): void {
  response.setHeader("Access-Control-Allow-Origin", "*");
  response.setHeader("Access-Control-Expose-Headers", exposedHeaders);
}

const allowedHeaders = [
  "Authorization",
  "X-API-Key",
  "Content-Type",
  "If-None-Match",
  "Last-Event-ID",
  "X-User-Context",
  "X-User-ID",
  "X-User-Email",
  "X-User-Attributes",
];

/** Other headers about the user that a page asks for. A wildcard cannot say "all that begin so". */
const userHeader = /^x-user-[a-z0-9-]{1,64}$/;

/** More than any page needs; the answer must not grow with the question. */
const mostRequestedHeaders = 32;

/** The longest that a browser keeps the answer to a preflight: a day, in some only two hours. */
const preflightMaxAgeSeconds = 24 * 60 * 60;

/** Whether a browser asks, before the request itself, if the page may make it. */
export function isPreflight({ method, headers }: IncomingMessage): boolean {
  return method === "OPTIONS" && headers["access-control-request-method"] !== undefined;
}

/** Answers a preflight. It needs no key: browsers never send one with it. */
export function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204, {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": allowedFor(request).join(", "),
    "Access-Control-Max-Age": preflightMaxAgeSeconds,
    Vary: "Access-Control-Request-Headers",
    "X-Content-Type-Options": "nosniff",
  });
  response.end();
}

function allowedFor({ headers }: IncomingMessage): string[] {
  const known = new Set(allowedHeaders.map((name) => name.toLowerCase()));
  const requested = (headers["access-control-request-headers"] ?? "")
    .split(",", mostRequestedHeaders)
    .map((name) => name.trim().toLowerCase());
  const more = requested.filter((name) => userHeader.test(name) && !known.has(name));
  return [...allowedHeaders, ...more];
}
