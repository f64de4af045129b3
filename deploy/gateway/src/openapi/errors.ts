import {
  ErrorBody,
  type ErrorCode,
  errorBodyFor,
  errorCodes,
  errorSchemaFor,
  type RouteContract,
  reportsRemaining,
} from "@halyard/contracts";
import { answerableErrors } from "@halyard/http";
import type { Components, JsonObject } from "./components.ts";
import { commonHeaders, headerRef, limitHeaders, optionalCacheHeaders } from "./headers.ts";

/** Meaning of each error code, as shown in the documentation. */
const explanations: Readonly<Record<ErrorCode, string>> = {
  AUTH_001: "The key or token is missing, malformed, unknown, expired or revoked",
  AUTH_002: "The key is valid, but not permitted to do this",
  AUTH_003: "The sign-in is older than 30 minutes. Confirm it, and repeat the request",
  NOT_FOUND_001: "The resource does not exist, or the key has no access to it",
  VALIDATION_001: "The body, the query or a header is invalid",
  VALIDATION_002: "The body or the headers are too large",
  VALIDATION_003: "The body is not JSON",
  CONFLICT_001: "The name is already in use, or the idempotency key was used with another request",
  CONFLICT_002: "The flag has no earlier state to roll back to",
  CONFLICT_003: "The condition of `If-Match` or `If-None-Match` is not met. Nothing was changed",
  APPROVAL_001:
    "The environment is protected, and the change needs an approved change request. `Location` is a draft of it, if one was made",
  RATE_001: "A limit of the plan or a rate limit has been reached",
  SERVER_001: "Internal error",
  SERVER_002: "The service is not ready, or a dependency of this request is unavailable",
};

const extraHeaders: Partial<Record<ErrorCode, JsonObject>> = {
  AUTH_001: { "WWW-Authenticate": headerRef("WWW-Authenticate") },
  CONFLICT_001: { Location: headerRef("Location") },
  APPROVAL_001: { Location: headerRef("Location") },
  CONFLICT_003: {
    ETag: {
      description: "The current ETag. Absent if the resource does not exist",
      schema: { type: "string" },
    },
  },
  RATE_001: { "Retry-After": headerRef("Retry-After") },
  SERVER_002: { "Retry-After": headerRef("Retry-After") },
};

/**
 * Returns the reusable responses: one for each error code. A code gets a second response if some routes report the
 * remaining limits with it and others do not.
 */
export function errorResponses(
  contracts: readonly RouteContract[],
  components: Components,
): JsonObject {
  const responses: JsonObject = {};
  for (const code of Object.keys(errorCodes) as ErrorCode[]) {
    const answering = contracts.filter(
      (contract) => !hasOwnShape(contract) && isAloneWithStatus(contract, code),
    );
    const ways = new Set(answering.map((contract) => reportsRemaining(contract, code)));
    for (const reportsLimits of [...ways].toSorted())
      responses[nameOf(code, reportsLimits)] = response([code], reportsLimits, {
        components,
        path: "/",
      });
  }
  return responses;
}

/**
 * Returns the name of a response. A rejection by a limit always reports the remaining limits, so it has one response.
 */
function nameOf(code: ErrorCode, reportsLimits: boolean): string {
  return reportsLimits && code !== "RATE_001" ? `${code}_with_limits` : code;
}

/** Returns whether a code is the only one of the route with its status. Otherwise the route has a response for all. */
function isAloneWithStatus(contract: RouteContract, code: ErrorCode): boolean {
  const { status } = errorCodes[code];
  const codes = answerableErrors(contract).filter((other) => errorCodes[other].status === status);
  return codes.length === 1 && codes[0] === code;
}

/** Returns whether the errors of a route have their own shape, as those of OFREP do. */
function hasOwnShape({ path }: RouteContract): boolean {
  return errorSchemaFor(path) !== ErrorBody;
}

function response(
  codes: readonly ErrorCode[],
  reportsLimits: boolean,
  { components, path }: { components: Components; path: string },
): JsonObject {
  const headers = Object.assign({}, ...codes.map((code) => extraHeaders[code] ?? {}));
  const target = path.replace(":key", "checkout");
  const errors = codes.map((rejected) => {
    const explanation = explanations[rejected];
    const body = errorBodyFor(target, rejected, explanation);
    return { code: "errorCode" in body ? body.errorCode : rejected, explanation, body };
  });
  return {
    description: errors.map(({ code, explanation }) => `${code}: ${explanation}`).join(". "),
    headers: {
      ...commonHeaders,
      ...optionalCacheHeaders,
      ...headers,
      ...(reportsLimits ? limitHeaders : {}),
    },
    content: {
      "application/json": {
        schema: components.refer(errorSchemaFor(path)),
        examples: Object.fromEntries(errors.map(({ code, body }) => [code, { value: body }])),
      },
    },
  };
}

/** Returns the error responses of an operation by status. Codes with the same status share a response. */
export function errorsByStatus(contract: RouteContract, components: Components): JsonObject {
  const byStatus = Map.groupBy(answerableErrors(contract), (code) => errorCodes[code].status);
  const responses: JsonObject = {};
  for (const [status, codes] of byStatus) {
    const [first, ...others] = codes as [ErrorCode, ...ErrorCode[]];
    const reportsLimits = codes.some((code) => reportsRemaining(contract, code));
    responses[String(status)] =
      others.length === 0 && !hasOwnShape(contract)
        ? { $ref: `#/components/responses/${nameOf(first, reportsLimits)}` }
        : response(codes, reportsLimits, { components, path: contract.path });
  }
  return responses;
}

/** Returns the error responses that only this operation has, by status. */
export function ownErrorsOf(contract: RouteContract, components: Components): JsonObject {
  const headers = {
    ...commonHeaders,
    ...(reportsRemaining(contract) ? limitHeaders : {}),
  };
  return Object.fromEntries(
    Object.entries(contract.ownErrors ?? {}).map(([status, { description, body, example }]) => [
      status,
      {
        description,
        headers,
        content: { "application/json": { schema: components.refer(body), example } },
      },
    ]),
  );
}
