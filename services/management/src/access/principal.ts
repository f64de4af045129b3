import { createHash, timingSafeEqual } from "node:crypto";
import { bearerToken, type DirectoryKey } from "@halyard/api-keys";
import type { Access } from "@halyard/contracts";
import { type Refusal, type RequestFacts, refuse } from "@halyard/service";

/** Who is asking: the platform's operator, or the holder of an API key. */
export type KeyPrincipal = { kind: "key"; key: DirectoryKey };
export type Principal = { kind: "operator" } | KeyPrincipal;

export type Authenticate = (request: RequestFacts) => Promise<Principal | Refusal>;

/** The check before a route that no operator may use. */
export type AuthenticateKey = (request: RequestFacts) => Promise<KeyPrincipal | Refusal>;

/** Finds an API key by the text that a caller presented. */
export type FindKey = (text: string, nowMs: number) => Promise<DirectoryKey | undefined>;

/**
 * The check that stands before a route. Who cannot be recognized gets 401; who is known but may not
 * use the route 403.
 */
export function createAuthentication(options: {
  operatorToken: string;
  findKey: FindKey;
  nowMs: () => number;
}): (access: Access) => Authenticate {
  const operatorDigest = digest(options.operatorToken);

  async function identify(token: string): Promise<Principal | undefined> {
    // Digests have one length, so the comparison takes one time, whatever was presented.
    if (timingSafeEqual(digest(token), operatorDigest)) return { kind: "operator" };
    const key = await options.findKey(token, options.nowMs());
    return key === undefined ? undefined : { kind: "key", key };
  }

  return (access) => async (request) => {
    const token = bearerToken(request.headers.authorization);
    if (token === undefined)
      return refuse("AUTH_001", "Send your API key as `Authorization: Bearer <API_KEY>`.");
    const principal = await identify(token);
    if (principal === undefined)
      return refuse("AUTH_001", "The API key is not valid: unknown, expired or revoked.");
    return permitted(principal, access) ?? principal;
  };
}

function permitted(principal: Principal, access: Access): Refusal | undefined {
  switch (access) {
    case "operator":
      if (principal.kind === "operator") return undefined;
      return refuse("AUTH_002", "This needs the operator's token, not an API key.");
    case "operator_or_server_key":
      if (principal.kind === "operator" || principal.key.kind === "server") return undefined;
      return refuse("AUTH_002", "This needs a server key or the operator's token.");
    case "server_key":
      if (principal.kind === "key" && principal.key.kind === "server") return undefined;
      return refuse("AUTH_002", "This needs a server key of the project.");
    case "any_key":
      if (principal.kind === "key") return undefined;
      return refuse("AUTH_002", "This needs an API key.");
  }
}

function digest(text: string): Buffer {
  return createHash("sha256").update(text).digest();
}
