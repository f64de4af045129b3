import { createServer, type IncomingMessage, type ServerResponse } from "node:http";
import type { AddressInfo } from "node:net";
import { text } from "node:stream/consumers";
import { setTimeout as delay } from "node:timers/promises";
import { decodeJwt, exportJWK, generateKeyPair, type JWTPayload, SignJWT } from "jose";

/**
 * Plays a provider whose responses are set by the test, for responses that no real provider sends.
 */
export const clientId = "halyard";

/** Claims of any type, or undefined for a missing claim. */
export type Claims = Record<string, unknown>;

type Keys = Awaited<ReturnType<typeof newKeys>>;

export async function newKeys(kid: string, alg = "RS256") {
  const pair = await generateKeyPair(alg, { extractable: true });
  return { ...pair, kid, alg, jwk: { ...(await exportJWK(pair.publicKey)), kid, alg } };
}

/** Responds in place of the issuer; undefined lets the issuer respond itself. */
type Override = (request: IncomingMessage, response: ServerResponse) => boolean;

export async function givenIssuer() {
  const state = {
    keys: await newKeys("first"),
    published: [] as Keys[],
    metadata: {} as Record<string, unknown>,
    /** The id token that the token endpoint returns. */
    idToken: "",
    /** Returns the id token of a code, in place of `idToken`. */
    tokenFor: undefined as ((code: string) => string | undefined) | undefined,
    userInfo: undefined as Record<string, unknown> | undefined,
    /** The last request at the token endpoint. */
    tokenRequest: new URLSearchParams(),
    /** All requests so far. */
    calls: [] as { request: string; authorization: string | undefined }[],
    override: undefined as Override | undefined,
    /** Time before each response. */
    delayMs: 0,
  };
  state.published = [state.keys];
  const server = createServer((request, response) => void handle(request, response));

  async function handle(request: IncomingMessage, response: ServerResponse): Promise<void> {
    const { authorization } = request.headers;
    state.calls.push({ request: `${request.method} ${request.url}`, authorization });
    if (state.override?.(request, response)) return;
    if (state.delayMs > 0) await delay(state.delayMs);
    const send = (body: unknown) => {
      response.setHeader("content-type", "application/json");
      response.end(JSON.stringify(body));
    };
    switch (new URL(request.url ?? "", url).pathname) {
      case "/.well-known/openid-configuration":
        return send(metadataOf(url, state.metadata));
      case "/keys":
        return send({ keys: state.published.map(({ jwk }) => jwk) });
      case "/token":
        state.tokenRequest = new URLSearchParams(await text(request));
        return send({
          ...{ access_token: "secret-access", token_type: "bearer" },
          id_token: state.tokenFor?.(state.tokenRequest.get("code") ?? "") ?? state.idToken,
        });
      case "/userinfo":
        return send(state.userInfo ?? { sub: decodeJwt(state.idToken).sub });
      default:
        response.writeHead(404).end();
    }
  }

  await new Promise<void>((resolve) => server.listen(0, "127.0.0.1", resolve));
  const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`;
  return {
    url,
    state,
    /** Signs claims as the issuer does now. Members that are undefined are left out. */
    sign: (claims: Claims, { keys = state.keys, typ }: { keys?: Keys; typ?: string } = {}) => {
      const header = { alg: keys.alg, kid: keys.kid, ...(typ && { typ }) };
      return new SignJWT(claims as JWTPayload).setProtectedHeader(header).sign(keys.privateKey);
    },
    /** Returns the claims of a valid id token, with changes. */
    claims: (nonce: string, changes: Claims = {}): Claims => {
      const now = Math.floor(Date.now() / 1_000);
      return {
        ...{ iss: url, aud: clientId, sub: "ada-subject", nonce, iat: now, exp: now + 60 },
        ...{ email: "ada@example.com", email_verified: true, name: "Ada" },
        ...changes,
      };
    },
    close: () => {
      server.closeAllConnections();
      return new Promise((resolve) => server.close(resolve));
    },
  };
}

function metadataOf(url: string, changes: Record<string, unknown>): Record<string, unknown> {
  return {
    issuer: url,
    authorization_endpoint: `${url}/authorize`,
    token_endpoint: `${url}/token`,
    jwks_uri: `${url}/keys`,
    userinfo_endpoint: `${url}/userinfo`,
    response_types_supported: ["code"],
    subject_types_supported: ["public"],
    id_token_signing_alg_values_supported: ["RS256", "ES256"],
    authorization_response_iss_parameter_supported: true,
    ...changes,
  };
}
