import type { IncomingMessage, ServerResponse } from "node:http";
import { type App, openPrefixes } from "@halyard/http";

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
  "traceparent",
  "tracestate",
  "baggage",
];

/**
 * Matches further headers about the user. The response lists each requested one, because CORS has no wildcard for a
 * prefix.
 */
const userHeader = /^x-user-[a-z0-9-]{1,64}$/;

/** Maximum number of requested headers: more than any page needs. It bounds the length of the response. */
const maxRequestedHeaders = 32;

/** Maximum time to cache the response. Browsers limit it to a day, some to two hours. */
const maxAgeSeconds = 24 * 60 * 60;

/** Responds to preflights for all paths that are open to any origin. Browsers send no key with a preflight. */
export function answerPreflights(app: App): void {
  for (const prefix of openPrefixes)
    app.options(`${prefix}*`, { config: { measured: false } }, (request, reply) => {
      if (request.headers["access-control-request-method"] === undefined) {
        reply.callNotFound();
        return;
      }
      reply.hijack();
      answerPreflight(request.raw, reply.raw);
    });
}

function answerPreflight(request: IncomingMessage, response: ServerResponse): void {
  response.writeHead(204, {
    "Access-Control-Allow-Origin": "*",
    "Access-Control-Allow-Methods": "GET, POST",
    "Access-Control-Allow-Headers": allowedFor(request).join(", "),
    "Access-Control-Max-Age": maxAgeSeconds,
    Vary: "Access-Control-Request-Headers",
    "X-Content-Type-Options": "nosniff",
  });
  response.end();
}

function allowedFor({ headers }: IncomingMessage): string[] {
  const known = new Set(allowedHeaders.map((name) => name.toLowerCase()));
  const requested = (headers["access-control-request-headers"] ?? "")
    .split(",", maxRequestedHeaders)
    .map((name) => name.trim().toLowerCase());
  const more = requested.filter((name) => userHeader.test(name) && !known.has(name));
  return [...allowedHeaders, ...more];
}
