import type { IncomingMessage, ServerResponse } from "node:http";
import { anyOriginHeaders } from "@halyard/service";

/** Headers of every answer, as a flat list of names and values. */
export const corsHeaders: readonly string[] = Object.entries(anyOriginHeaders).flat();

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
