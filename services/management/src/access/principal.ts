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
import type { Access, RouteContract } from "@halyard/contracts";
import { createProblem, isProblem, type Problem, type RequestFacts } from "@halyard/http";
import { type Caller, type Callers, createSessionAuthentication } from "@halyard/people";
import type { Author } from "./change-context.ts";
import { costOfRequest } from "./request-cost.ts";

/**
 * The authenticated caller: the operator, an API key, or a session, which acts like a server key.
 */
export type KeyPrincipal = { kind: "key"; key: Caller };
export type Principal = { kind: "operator" } | KeyPrincipal;

/** The credentials that the routes of this service require: a bearer token of the operator or an API key. */
export type BearerAccess = Extract<
  Access,
  | "operator"
  | "session"
  | "operator_or_session"
  | "operator_or_server_key"
  | "server_key"
  | "any_key"
  | "operator_or_any_key"
>;

/** The principals that a route with this access accepts. */
export type PrincipalOf<A extends BearerAccess> = {
  operator: Principal;
  session: KeyPrincipal;
  operator_or_session: Principal;
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

/** The parts of a route that its authentication needs. */
export type AuthenticatedRoute = Pick<RouteContract, "operationId" | "method"> & {
  access: BearerAccess;
};

/**
 * Creates the authentication of routes. A missing or invalid token gets 401, and a valid token or session without
 * permission for the route gets 403. A key or session that exceeds its rate limit, or an address with too many invalid
 * tokens, gets 429 instead. The operator has no rate limit.
 */
export function createAuthentication(options: {
  operatorToken: string;
  findKey: FindKey;
  callers: Callers;
  limits: KeyLimits;
  lastUsed: LastUsed;
  nowMs: () => number;
}): (route: AuthenticatedRoute) => Authenticate {
  const { callers, limits, lastUsed } = options;
  const authenticateSession = createSessionAuthentication(options);
  const isOperatorToken = createIsOperatorToken(digestOfToken(options.operatorToken));

  /** Finds the caller of a key, after the rate limit and the access of the key. */
  async function authenticateKey(
    token: string,
    { route, request, nowMs }: { route: AuthenticatedRoute; request: RequestFacts; nowMs: number },
  ): Promise<Principal | Problem> {
    const key = await options.findKey(token, nowMs, () => limits.checkAddress(request.ip, nowMs));
    if (key === undefined) return limits.rejectInvalidKey(request.ip, nowMs);
    if (isProblem(key)) return key;
    // Rejected requests count too. Otherwise a key in use could appear unused and be revoked.
    lastUsed.note(key.id, nowMs);
    const problem = limits.admit(key, nowMs, {
      checkAccess: () => checkKeyAccess(key, route.access),
      cost: costOfRequest(request.headers),
    });
    return problem ?? principalOf(await callers.ofKey(route, key, request));
  }

  return (route) => async (request) => {
    const nowMs = options.nowMs();
    const token = bearerToken(request.headers.authorization);
    if (token === undefined)
      return principalOf(
        await authenticateSession(route, request, nowMs, costOfRequest(request.headers)),
      );
    if (!isOperatorToken(token)) return authenticateKey(token, { route, request, nowMs });
    return checkOperatorAccess(route.access) ?? { kind: "operator" };
  };
}

function principalOf(caller: Caller | Problem): Principal | Problem {
  return isProblem(caller) ? caller : { kind: "key", key: caller };
}

function checkOperatorAccess(access: BearerAccess): Problem | undefined {
  if (access === "session") return needsSession;
  return access === "server_key" || access === "any_key" ? keyProblems.operator : undefined;
}

function checkKeyAccess(key: DirectoryKey, access: BearerAccess): Problem | undefined {
  switch (access) {
    case "operator":
      return createProblem("AUTH_002", "This needs the operator's token, not an API key.");
    case "session":
      return needsSession;
    case "operator_or_session":
      return createProblem("AUTH_002", "This needs a sign-in or the operator's token.");
    case "operator_or_server_key":
      if (key.kind === "server") return undefined;
      return createProblem("AUTH_002", "This needs a server key or the operator's token.");
    case "server_key":
      return key.kind === "server" ? undefined : keyProblems.notServer;
    case "any_key":
    case "operator_or_any_key":
      return undefined;
  }
}

const needsSession = createProblem("AUTH_002", "This needs a sign-in.");

export function authorOf(principal: Principal): Author {
  if (principal.kind === "operator") return "operator";
  const { userId, id, via } = principal.key;
  return { userId, apiKeyId: via === "key" ? id : null, via };
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
