import { cacheHeadersOf, type RouteContract } from "@halyard/contracts";
import type { JsonObject } from "./components.ts";

/** Headers of answers, and headers that requests may have, each described once. */
const text = { type: "string" };

export const answerHeaders: JsonObject = {
  "X-Request-Id": {
    description: "The request's id, as it was sent or as it was made; it is in the logs too",
    required: true,
    schema: text,
  },
  ETag: {
    description: "Names what was answered, for a conditional request",
    required: true,
    schema: text,
  },
  Location: {
    description:
      "Path of the new resource; on a 409 for a taken flag key, of the flag that has the key",
    schema: text,
  },
  "Retry-After": {
    description:
      "Seconds after which to try again; on a 429 at most 600, even if `RateLimit` says more. Absent where time alone does not help, as when all streams of the plan are open or all its projects are there",
    schema: { type: "integer" },
  },
  "RateLimit-Policy": {
    description:
      'The limits that hold, as a list. Each has a name and its quota `q`: of requests in the `w` seconds of the present month (`"monthly";q=3000000;w=2678400`), of a burst that is whole again after `w` seconds (`"requests";q=1000;w=10`), or, without `w`, of streams that are open together (`"sse";q=100;qu="concurrent-requests"`, where `qu` is the unit) and of projects (`"projects";q=10`)',
    schema: text,
  },
  RateLimit: {
    description:
      'Of each limit what remains, `r`, and the seconds `t` until it is whole again, or, when nothing remains, until there is more: `"monthly";r=2871045;t=1036800`. `sse` and `projects` have no `t`: nobody knows when a stream closes, or a project goes',
    schema: text,
  },
  "Cache-Control": {
    description: "The caches that may store the answer, and for how long",
    schema: text,
  },
  Vary: { description: "The request headers that the answer depends on", schema: text },
  "X-Content-Type-Options": { description: "Always `nosniff`", required: true, schema: text },
  "WWW-Authenticate": { description: "Always `Bearer`", schema: text },
};

export const requestHeaderParameters: JsonObject = {
  "X-Request-Id": header("X-Request-Id", "An id of yours for this request, to find it in logs", {
    ...text,
    maxLength: 128,
  }),
  "If-Match": header("If-Match", "Change only what still has this ETag; 412 otherwise", text),
  "If-None-Match": header("If-None-Match", "Answer 304 when nothing has changed", text),
  "Idempotency-Key": header(
    "Idempotency-Key",
    "Makes repeating safe for 24 hours: the same key and body again get the first answer again",
    text,
  ),
  "Last-Event-ID": header("Last-Event-ID", "The id of the last event that was received", text),
  "X-User-Context": header(
    "X-User-Context",
    "All attributes of the user: a JSON object, plain or in base64. At most 16 KiB",
    text,
  ),
  "X-User-ID": header("X-User-ID", "The user's id", text),
  "X-User-Email": header("X-User-Email", "The user's e-mail address", text),
  "X-User-Attributes": header(
    "X-User-Attributes",
    "Further attributes: `name=value,name=value`",
    text,
  ),
};

function header(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: "header", required: false, description, schema };
}

/** How much of its limits a caller has left. */
export const limitHeaders: JsonObject = {
  "RateLimit-Policy": headerRef("RateLimit-Policy"),
  RateLimit: headerRef("RateLimit"),
};

/** Headers that any answer can have. */
export const commonHeaders: JsonObject = {
  "X-Request-Id": headerRef("X-Request-Id"),
  "X-Content-Type-Options": headerRef("X-Content-Type-Options"),
};

/** Headers of the errors of reads, which say who may store them. */
export const optionalCacheHeaders: JsonObject = {
  "Cache-Control": headerRef("Cache-Control"),
  Vary: headerRef("Vary"),
};

/** The cache headers of a route's successful answers, with their values. */
export function cacheHeaders(contract: RouteContract): JsonObject {
  return Object.fromEntries(
    Object.entries(cacheHeadersOf(contract)).map(([name, value]) => [
      name,
      {
        description: (answerHeaders[name] as { description: string }).description,
        required: true,
        schema: { type: "string", const: value },
      },
    ]),
  );
}

export function headerRef(name: string): JsonObject {
  return { $ref: `#/components/headers/${name}` };
}

export function parameterRef(name: string): JsonObject {
  return { $ref: `#/components/parameters/${name}` };
}
