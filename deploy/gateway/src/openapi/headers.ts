import type { JsonObject } from "./components.ts";

/** Headers of answers, and headers that requests may have, each described once. */
const text = { type: "string" };

export const answerHeaders: JsonObject = {
  "X-Request-Id": {
    description: "The request's id, as it was sent or as it was made; it is in the logs too",
    schema: text,
  },
  ETag: { description: "Names what was answered, for a conditional request", schema: text },
  Location: { description: "Where the new resource is", schema: text },
  "Retry-After": { description: "Seconds after which to try again", schema: { type: "integer" } },
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
};

function header(name: string, description: string, schema: JsonObject): JsonObject {
  return { name, in: "header", required: false, description, schema };
}

export function headerRef(name: string): JsonObject {
  return { $ref: `#/components/headers/${name}` };
}

export function parameterRef(name: string): JsonObject {
  return { $ref: `#/components/parameters/${name}` };
}
