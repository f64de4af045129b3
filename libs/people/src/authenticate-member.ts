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

/**
 * Authenticates requests to a route that requires a server key or a session. An unknown token gets 401; a client key, the
 * operator's token or a missing role gets 403. Beyond a rate limit, a key, a session or an unknown token gets 429 instead.
 */
export type AuthenticateMember = (
  contract: Pick<RouteContract, "operationId" | "method">,
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
  const isOperatorToken = createIsOperatorToken(options.operatorTokenDigest);
  return (contract) => async (request) => {
    const nowMs = options.nowMs();
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) {
      const session = await callers.findSession(request);
      if (session === undefined) return keyProblems.missing;
      lastUsed.note(session.id, nowMs);
      const caller = await callers.ofSession(contract, session, request);
      if (isProblem(caller)) return caller;
      return limits.admit(caller, nowMs, { checkAccess: () => undefined }) ?? caller;
    }
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
