import type { Problem, RequestFacts } from "@halyard/http";
import { bearerToken, createIsOperatorToken } from "./bearer-token.ts";
import { type KeyLimits, keyProblems } from "./key-limits.ts";
import type { DirectoryKey } from "./key-verification.ts";
import type { LastUsed } from "./last-used.ts";

/**
 * Authenticates requests to routes that require a server key. An unknown token gets 401; a client key or the operator's
 * token gets 403. Beyond a rate limit, a key or an unknown token gets 429 instead.
 */
export type AuthenticateServerKey = (request: RequestFacts) => DirectoryKey | Problem;

export function createServerKeyAuthentication(options: {
  verify: (text: string, nowMs: number) => DirectoryKey | undefined;
  limits: KeyLimits;
  lastUsed: LastUsed;
  operatorTokenDigest?: string | undefined;
  nowMs: () => number;
}): AuthenticateServerKey {
  const { limits, lastUsed } = options;
  const isOperatorToken = createIsOperatorToken(options.operatorTokenDigest);
  return ({ headers, ip }) => {
    const token = bearerToken(headers.authorization);
    if (token === undefined) return keyProblems.missing;
    const nowMs = options.nowMs();
    const key = options.verify(token, nowMs);
    if (key === undefined)
      return isOperatorToken(token) ? keyProblems.operator : limits.rejectInvalidKey(ip, nowMs);
    // Noted even if the key is rejected, so that an operator does not revoke a key that is still in use.
    lastUsed.note(key.id, nowMs);
    const checkAccess = () => (key.kind === "server" ? undefined : keyProblems.notServer);
    return limits.admit(key, nowMs, { checkAccess }) ?? key;
  };
}

/** Returns the problem of an `environment_only` key in another environment than its own. */
export function checkKeyEnvironment(key: DirectoryKey, environmentId: string): Problem | undefined {
  if (!key.environmentOnly || key.environmentId === environmentId) return undefined;
  return keyProblems.otherEnvironment;
}
