import {
  bearerToken,
  checkKeyEnvironment,
  createIsOperatorToken,
  type DirectoryKey,
  digestOfToken,
  type KeyLimits,
  keyProblems,
  type LastUsed,
} from "@halyard/api-keys";
import type { Access } from "@halyard/contracts";
import { createProblem, isProblem, type Problem, type RequestFacts } from "@halyard/http";
import type { Author } from "./change-context.ts";
import { costOfRequest } from "./request-cost.ts";

/** The authenticated caller: the holder of an API key, or the platform's operator. */
export type KeyPrincipal = { kind: "key"; key: DirectoryKey };
export type Principal = { kind: "operator" } | KeyPrincipal;

/** The credentials that the routes of this service require: a bearer token of the operator or an API key. */
export type BearerAccess = Extract<
  Access,
  "operator" | "operator_or_server_key" | "server_key" | "any_key" | "operator_or_any_key"
>;

/** The principals that a route with this access accepts. */
export type PrincipalOf<A extends BearerAccess> = {
  operator: Principal;
  operator_or_server_key: Principal;
  server_key: KeyPrincipal;
  any_key: KeyPrincipal;
  operator_or_any_key: Principal;
}[A];

export type Authenticate<Caller extends Principal = Principal> = (
  request: RequestFacts,
) => Promise<Caller | Problem>;

/**
 * Finds an API key by its text. Calls `checkCaller` before a database query for an unknown key, so that the rate limit
 * of the address applies first.
 */
export type FindKey = (
  text: string,
  nowMs: number,
  checkCaller: () => Problem | undefined,
) => Promise<DirectoryKey | Problem | undefined>;

/**
 * Creates the authentication of routes. A missing or invalid token gets 401, and a valid token without permission for
 * the route gets 403. A key that exceeds its rate limit, or an address with too many invalid tokens, gets 429 instead.
 * The operator has no rate limit.
 */
export function createAuthentication(options: {
  operatorToken: string;
  findKey: FindKey;
  limits: KeyLimits;
  lastUsed: LastUsed;
  nowMs: () => number;
}): (access: BearerAccess) => Authenticate {
  const { limits, lastUsed } = options;
  const isOperatorToken = createIsOperatorToken(digestOfToken(options.operatorToken));

  async function identify(
    token: string,
    address: string,
    nowMs: number,
  ): Promise<Principal | Problem> {
    if (isOperatorToken(token)) return { kind: "operator" };
    const key = await options.findKey(token, nowMs, () => limits.checkAddress(address, nowMs));
    if (key === undefined) return limits.rejectInvalidKey(address, nowMs);
    return isProblem(key) ? key : { kind: "key", key };
  }

  function authorize(
    principal: Principal,
    { access, cost, nowMs }: { access: BearerAccess; cost: number; nowMs: number },
  ): Principal | Problem {
    if (principal.kind === "operator") return checkAccess(principal, access) ?? principal;
    const { key } = principal;
    // Rejected requests count too. Otherwise a key in use could appear unused and be revoked.
    lastUsed.note(key.id, nowMs);
    const problem = limits.admit(key, nowMs, {
      checkAccess: () => checkAccess(principal, access),
      cost,
    });
    return problem ?? principal;
  }

  return (access) => async (request) => {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return keyProblems.missing;
    const nowMs = options.nowMs();
    const principal = await identify(token, request.ip, nowMs);
    if (isProblem(principal)) return principal;
    return authorize(principal, { access, cost: costOfRequest(request.headers), nowMs });
  };
}

function checkAccess(principal: Principal, access: BearerAccess): Problem | undefined {
  switch (access) {
    case "operator":
      if (principal.kind === "operator") return undefined;
      return createProblem("AUTH_002", "This needs the operator's token, not an API key.");
    case "operator_or_server_key":
      if (principal.kind === "operator" || principal.key.kind === "server") return undefined;
      return createProblem("AUTH_002", "This needs a server key or the operator's token.");
    case "server_key":
      if (principal.kind === "operator") return keyProblems.operator;
      return principal.key.kind === "server" ? undefined : keyProblems.notServer;
    case "any_key":
      return principal.kind === "key" ? undefined : keyProblems.operator;
    case "operator_or_any_key":
      return undefined;
  }
}

export function authorOf(principal: Principal): Author {
  if (principal.kind === "operator") return "operator";
  return { userId: principal.key.userId, apiKeyId: principal.key.id };
}

/**
 * Returns whether a principal can access a project. The operator can access every project, and a key only its own; for
 * other keys the project does not exist. Call it before any read or lock. The id comes from the request, and a UUID can
 * be written in either case.
 */
export function reachesProject(principal: Principal, projectId: string): boolean {
  return principal.kind === "operator" || principal.key.projectId === projectId.toLowerCase();
}

export const noSuchProject = createProblem("NOT_FOUND_001", "There is no such project.");

/** Rejects a key with `environment_only` in any environment but its own. */
export function checkReachesEnvironment(
  principal: Principal,
  environmentId: string,
): Problem | undefined {
  if (principal.kind === "operator") return undefined;
  return checkKeyEnvironment(principal.key, environmentId);
}
