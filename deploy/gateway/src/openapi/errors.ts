import {
  ErrorBody,
  type ErrorCode,
  errorBodyFor,
  errorCodes,
  errorSchemaFor,
  type RouteContract,
  reportsRemaining,
} from "@halyard/contracts";
import { answerableErrors } from "@halyard/service";
import type { Components, JsonObject } from "./components.ts";
import { commonHeaders, headerRef, limitHeaders, optionalCacheHeaders } from "./headers.ts";

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
  CONFLICT_001: { Location: headerRef("Location") },
  CONFLICT_003: { ETag: headerRef("ETag") },
  RATE_001: { "Retry-After": headerRef("Retry-After") },
  SERVER_002: { "Retry-After": headerRef("Retry-After") },
};

/**
 * The reusable responses: one for each error code, and a second one where some routes answer it with what
 * the caller has left, and others without.
 */
export function errorResponses(
  contracts: readonly RouteContract[],
  components: Components,
): JsonObject {
  const responses: JsonObject = {};
  for (const code of Object.keys(errorCodes) as ErrorCode[]) {
    const answering = contracts.filter(
      (contract) => !hasOwnShape(contract) && answerableErrors(contract).includes(code),
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

/** A refusal by a limit always tells what is left, so there is one response for it. */
function nameOf(code: ErrorCode, reportsLimits: boolean): string {
  return reportsLimits && code !== "RATE_001" ? `${code}_with_limits` : code;
}

/** Error responses of OFREP are not shared with other paths. */
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

/** The error responses of an operation, by status; codes that share a status share a response. */
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

/** The error responses of an operation that have a shape of their own, by status. */
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
