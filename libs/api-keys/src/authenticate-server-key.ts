import type { Refusal, RequestFacts } from "@halyard/service";
import { bearerToken } from "./bearer.ts";
import type { KeyLimits } from "./key-limits.ts";
import { keyRefusals } from "./key-refusals.ts";
import type { DirectoryKey } from "./key-verification.ts";
import type { LastUsed } from "./last-used.ts";
import { createIsOperatorToken } from "./operator-token.ts";

/**
 * The check before a route that needs a server key. An unknown token gets 401, a client key or the
 * operator's token 403. Beyond a rate limit, a key or an unknown token gets 429 instead.
 */
export type AuthenticateServerKey = (request: RequestFacts) => DirectoryKey | Refusal;

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
    if (token === undefined) return keyRefusals.missing;
    const nowMs = options.nowMs();
    const key = options.verify(token, nowMs);
    if (key === undefined)
      return isOperatorToken(token) ? keyRefusals.operator : limits.refuseWrongKey(ip, nowMs);
    // Also when it is refused: whoever still has it in use must not find it revoked as unneeded.
    lastUsed.note(key.id, nowMs);
    const refusal = limits.checkKey(key, nowMs);
    if (refusal !== undefined) return refusal;
    return key.kind === "server" ? key : keyRefusals.notServer;
  };
}

/** A key made with `environment_only` works in its own environment alone. */
export function checkKeyEnvironment(key: DirectoryKey, environmentId: string): Refusal | undefined {
  if (!key.environmentOnly || key.environmentId === environmentId) return undefined;
  return keyRefusals.otherEnvironment;
}
