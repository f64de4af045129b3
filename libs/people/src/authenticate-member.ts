import {
  bearerToken,
  createIsOperatorToken,
  type DirectoryKey,
  type KeyLimits,
  keyProblems,
  type LastUsed,
} from "@halyard/api-keys";
import type { RouteContract } from "@halyard/contracts";
import { isProblem, type Problem, type RequestFacts } from "@halyard/http";
import type { Caller, Callers } from "./callers.ts";

type Contract = Pick<RouteContract, "operationId" | "method">;

/**
 * Authenticates requests to a route that requires a server key or a session. An unknown token gets 401; a client key, the
 * operator's token or a missing role gets 403. Beyond a rate limit, a key, a session, or an address with unknown tokens or sessions gets 429 instead.
 */
export type AuthenticateMember = (
  contract: Contract,
) => (request: RequestFacts) => Promise<Caller | Problem>;

export function createMemberAuthentication(options: {
  verify: (text: string, nowMs: number) => DirectoryKey | undefined;
  callers: Callers;
  limits: KeyLimits;
  lastUsed: LastUsed;
  operatorTokenDigest?: string | undefined;
  nowMs: () => number;
}): AuthenticateMember {
  const { callers, limits, lastUsed } = options;
  const authenticateSession = createSessionAuthentication(options);
  const isOperatorToken = createIsOperatorToken(options.operatorTokenDigest);
  return (contract) => async (request) => {
    const nowMs = options.nowMs();
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return authenticateSession(contract, request, nowMs);
    const key = options.verify(token, nowMs);
    if (key === undefined)
      return isOperatorToken(token)
        ? keyProblems.operator
        : limits.rejectInvalidKey(request.ip, nowMs);
    // Noted even if the key is rejected, so that an operator does not revoke a key that is still in use.
    lastUsed.note(key.id, nowMs);
    const checkAccess = () => (key.kind === "server" ? undefined : keyProblems.notServer);
    const problem = limits.admit(key, nowMs, { checkAccess });
    return problem ?? callers.ofKey(contract, key, request);
  };
}

/**
 * Creates the authentication by session, for requests without a bearer token. A large request counts as `cost` requests.
 */
export function createSessionAuthentication({
  callers,
  limits,
  lastUsed,
}: {
  callers: Callers;
  limits: KeyLimits;
  lastUsed: LastUsed;
}) {
  return async (
    contract: Contract,
    request: RequestFacts,
    nowMs: number,
    cost = 1,
  ): Promise<Caller | Problem> => {
    const session = await callers.findSession(request);
    if (session === undefined)
      return callers.hasCookie(request)
        ? limits.rejectInvalidKey(request.ip, nowMs, keyProblems.missing)
        : keyProblems.missing;
    lastUsed.note(session.id, nowMs);
    const caller = await callers.ofSession(contract, session, request);
    // Requests that are rejected, or belong to no organization, count for the person.
    const organizationId = (!isProblem(caller) && caller.organizationId) || session.personId;
    const limited = { id: session.id, organizationId, kind: "server" } as const;
    const checkAccess = () => (isProblem(caller) ? caller : undefined);
    return limits.admit(limited, nowMs, { checkAccess, cost }) ?? caller;
  };
}
