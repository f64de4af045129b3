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
import { createProblem, isProblem, type Problem, type RequestFacts } from "@halyard/service";
import type { Author } from "./change-context.ts";

/** Who is asking: the platform's operator, or the holder of an API key. */
export type KeyPrincipal = { kind: "key"; key: DirectoryKey };
export type Principal = { kind: "operator" } | KeyPrincipal;

/** What the routes of this service ask for: a bearer token, of the operator or of a key. */
export type BearerAccess = Extract<
  Access,
  "operator" | "operator_or_server_key" | "server_key" | "any_key"
>;

/** The callers that a route with this access admits. */
export type PrincipalOf<A extends BearerAccess> = {
  operator: Principal;
  operator_or_server_key: Principal;
  server_key: KeyPrincipal;
  any_key: KeyPrincipal;
}[A];

export type Authenticate<Caller extends Principal = Principal> = (
  request: RequestFacts,
) => Promise<Caller | Problem>;

/**
 * Finds an API key by the text that a caller presented. Where that costs a query, the caller is checked
 * first, and may be refused unheard.
 */
export type FindKey = (
  text: string,
  nowMs: number,
  checkCaller: () => Problem | undefined,
) => Promise<DirectoryKey | Problem | undefined>;

/**
 * The check that stands before a route. Who cannot be recognized gets 401; who is known but may not
 * use the route 403; a key that asks too often, or an address that sends too many wrong tokens, 429 in
 * place of either. The operator is not limited.
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

  function admitted(
    principal: Principal,
    access: BearerAccess,
    nowMs: number,
  ): Principal | Problem {
    if (principal.kind === "operator") return permitted(principal, access) ?? principal;
    const { key } = principal;
    // Also when it is refused: whoever still has it in use must not find it revoked as unneeded.
    lastUsed.note(key.id, nowMs);
    return limits.checkKey(key, nowMs) ?? permitted(principal, access) ?? principal;
  }

  return (access) => async (request) => {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined) return keyProblems.missing;
    const nowMs = options.nowMs();
    const principal = await identify(token, request.ip, nowMs);
    return isProblem(principal) ? principal : admitted(principal, access, nowMs);
  };
}

function permitted(principal: Principal, access: BearerAccess): Problem | undefined {
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
  }
}

export function authorOf(principal: Principal): Author {
  if (principal.kind === "operator") return "operator";
  return { userId: principal.key.userId, apiKeyId: principal.key.id };
}

/**
 * The operator reaches every project, a key its own; to others a project does not exist. Asked before
 * anything is read or locked. The id is as it came: a UUID may be written in either case.
 */
export function reachesProject(principal: Principal, projectId: string): boolean {
  return principal.kind === "operator" || principal.key.projectId === projectId.toLowerCase();
}

export const noSuchProject = createProblem("NOT_FOUND_001", "There is no such project.");

/** A key made with `environment_only` reaches its own environment only. */
export function checkReachesEnvironment(
  principal: Principal,
  environmentId: string,
): Problem | undefined {
  if (principal.kind === "operator") return undefined;
  return checkKeyEnvironment(principal.key, environmentId);
}
