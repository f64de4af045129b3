import { cacheHeadersOf, environmentHeader, type RouteContract } from "@halyard/contracts";
import type { JsonObject } from "./components.ts";

/** Headers of requests and responses. Each is described once. */
const text = { type: "string" };

export const answerHeaders: JsonObject = {
  "X-Request-Id": {
    description:
      "Id of the request: the one that was sent, or a generated one. The logs contain it",
    required: true,
    schema: text,
  },
  ETag: {
    description: "Identifies the content of the response, for conditional requests",
    required: true,
    schema: text,
  },
  Location: {
    description:
      "Path of the new resource. On a 409 for a flag key that is already in use: path of the existing flag",
    schema: text,
  },
  "Retry-After": {
    description:
      "Seconds after which to retry. On a 429 at most 600, even if `RateLimit` has a longer time. Absent if waiting alone does not help, such as when all streams or projects of the plan are in use",
    schema: { type: "integer" },
  },
  "RateLimit-Policy": {
    description:
      'The limits that apply, as a list. Each has a name and a quota `q`: requests in the `w` seconds of the current month (`"monthly";q=3000000;w=2678400`), a burst that is fully available again after `w` seconds (`"requests";q=1000;w=10`), or, without `w`, concurrent streams (`"sse";q=100;qu="concurrent-requests"`, where `qu` is the unit) or projects (`"projects";q=10`)',
    schema: text,
  },
  RateLimit: {
    description:
      'The remaining part `r` of each limit, and the seconds `t` until it is fully available again or, if nothing remains, until there is more: `"monthly";r=2871045;t=1036800`. `sse` and `projects` have no `t`, because it is unknown when a stream closes or a project is deleted',
    schema: text,
  },
  "Cache-Control": {
    description: "The caches that may store the response, and for how long",
    schema: text,
  },
  Vary: { description: "Request headers that the response depends on", schema: text },
  "X-Content-Type-Options": { description: "Always `nosniff`", required: true, schema: text },
  "WWW-Authenticate": { description: "Always `Bearer`", schema: text },
};

/** RFC 9110, section 8.8.3, without characters beyond ASCII. */
const entityTag = '(?:W/)?"[!#-~]*"';

export const requestHeaderParameters: JsonObject = {
  "X-Request-Id": header("X-Request-Id", "An id for this request, to find it in the logs", {
    ...text,
    maxLength: 128,
  }),
  [environmentHeader]: header(
    environmentHeader,
    "The environment of a request by session, which must send it. Requests with an API key have the environment of the key",
    { ...text, format: "uuid" },
  ),
  "If-Match": header(
    "If-Match",
    "Applies the change only if the resource still has this ETag; otherwise 412",
    { ...text, maxLength: 1_000, pattern: `^(?:\\*|${entityTag}(?:, *${entityTag})*)$` },
  ),
  "If-None-Match": header("If-None-Match", "Returns 304 if the ETag is still the same", text),
  "If-None-Match-Any": header(
    "If-None-Match",
    "With `*`, applies the change only if it replaces nothing; otherwise 412",
    text,
  ),
  "Idempotency-Key": header(
    "Idempotency-Key",
    "Makes repetitions safe for 24 hours: the same key with the same body returns the first response again",
    { ...text, minLength: 1, maxLength: 255, pattern: "^[ -~]+$" },
  ),
  "Last-Event-ID": header("Last-Event-ID", "The id of the last event received", text),
  "X-User-Context": header(
    "X-User-Context",
    "All attributes of the user, as a JSON object, plain or in base64. At most 16 KiB",
    text,
  ),
  "X-User-ID": header("X-User-ID", "The user's id", text),
  "X-User-Email": header("X-User-Email", "The user's e-mail address", text),
  "X-User-Attributes": header(
    "X-User-Attributes",
    "Additional attributes: `name=value,name=value`",
    text,
  ),
};

function header(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: "header", required: false, description, schema };
}

/** Headers that report the remaining limits of the caller. */
export const limitHeaders: JsonObject = {
  "RateLimit-Policy": headerRef("RateLimit-Policy"),
  RateLimit: headerRef("RateLimit"),
};

/** Headers of every response. */
export const commonHeaders: JsonObject = {
  "X-Request-Id": headerRef("X-Request-Id"),
  "X-Content-Type-Options": headerRef("X-Content-Type-Options"),
};

/** Cache headers of error responses to reads. */
export const optionalCacheHeaders: JsonObject = {
  "Cache-Control": headerRef("Cache-Control"),
  Vary: headerRef("Vary"),
};

/** Returns the cache headers of a route's successful responses, with their values. */
export function cacheHeaders(contract: RouteContract): JsonObject {
  return Object.fromEntries(
    Object.entries(cacheHeadersOf(contract)).map(([name, value]) => [
      name,
      {
        description: (answerHeaders[name] as { description: string }).description,
        required: true,
        schema: { type: "string", ...valuesOf(contract, name, value) },
      },
    ]),
  );
}

/** A large response of these services is compressed, so that it depends on one more header. */
function valuesOf({ service }: RouteContract, name: string, value: string): JsonObject {
  if (name !== "Vary" || service === "sdk-edge") return { const: value };
  return { enum: [value, `${value}, Accept-Encoding`] };
}

export function headerRef(name: string): JsonObject {
  return { $ref: `#/components/headers/${name}` };
}

export function parameterRef(name: string): JsonObject {
  return { $ref: `#/components/parameters/${name}` };
}
