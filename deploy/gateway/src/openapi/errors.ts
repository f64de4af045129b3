import {
  ErrorBody,
  type ErrorCode,
  errorBody,
  errorCodes,
  type RouteContract,
} from "@halyard/contracts";
import type { Components, JsonObject } from "./components.ts";
import { headerRef, limitHeaders } from "./headers.ts";

/** When each error is answered, for people who meet it. */
const explanations: Readonly<Record<ErrorCode, string>> = {
  AUTH_001: "No key, or one that is malformed, unknown, expired or revoked",
  AUTH_002: "The key is valid but may not do this",
  NOT_FOUND_001: "There is no such resource, or it belongs to somebody else",
  VALIDATION_001: "The body, the query or a header does not parse or fit",
  VALIDATION_002: "The body or the headers are too large",
  VALIDATION_003: "The body is not JSON",
  CONFLICT_001: "The name is taken, or the idempotency key was used for something else",
  CONFLICT_002: "There is nothing to roll back to",
  CONFLICT_003: "`If-Match` does not name the present version",
  RATE_001: "A limit of the plan or a rate limit is reached",
  SERVER_001: "A fault on our side",
  SERVER_002: "Not ready, or a part that this call needs is away",
};

const extraHeaders: Partial<Record<ErrorCode, JsonObject>> = {
  AUTH_001: { "WWW-Authenticate": headerRef("WWW-Authenticate") },
  CONFLICT_003: { ETag: headerRef("ETag") },
  RATE_001: {
    "Retry-After": headerRef("Retry-After"),
    ...limitHeaders,
  },
  SERVER_002: { "Retry-After": headerRef("Retry-After") },
};

/** One reusable response for each error code. */
export function errorResponses(components: Components): JsonObject {
  return Object.fromEntries(
    (Object.keys(errorCodes) as ErrorCode[]).map((code) => [code, response([code], components)]),
  );
}

function response(codes: readonly ErrorCode[], components: Components): JsonObject {
  const headers = Object.assign({}, ...codes.map((code) => extraHeaders[code] ?? {}));
  const examples = codes.map((code) => [code, { value: errorBody(code, explanations[code]) }]);
  return {
    description: codes.map((code) => `${code}: ${explanations[code]}`).join(". "),
    headers: { "X-Request-Id": headerRef("X-Request-Id"), ...headers },
    content: {
      "application/json": {
        schema: components.refer(ErrorBody),
        examples: Object.fromEntries(examples),
      },
    },
  };
}

/** The error responses of an operation, by status; codes that share a status share a response. */
export function errorsByStatus(codes: readonly ErrorCode[], components: Components): JsonObject {
  const byStatus = Map.groupBy(codes, (code) => errorCodes[code].status);
  const responses: JsonObject = {};
  for (const [status, ofStatus] of byStatus) {
    const [only, ...others] = ofStatus;
    responses[String(status)] =
      others.length === 0
        ? { $ref: `#/components/responses/${only}` }
        : response(ofStatus, components);
  }
  return responses;
}

/** The error responses of an operation that have a shape of their own, by status. */
export function ownErrorsOf({ ownErrors = {} }: RouteContract, components: Components): JsonObject {
  return Object.fromEntries(
    Object.entries(ownErrors).map(([status, { description, body, example }]) => [
      status,
      {
        description,
        headers: { "X-Request-Id": headerRef("X-Request-Id") },
        content: { "application/json": { schema: components.refer(body), example } },
      },
    ]),
  );
}
