import { setTimeout as delay } from "node:timers/promises";
import { createRemoteJWKSet } from "jose";
import * as client from "openid-client";
import { type LogoutToken, verifyLogoutToken } from "./logout-token.ts";
import {
  type ClaimsRefusal,
  type ProviderIdentity,
  readProviderClaims,
} from "./provider-claims.ts";
import type { OidcSettings } from "./settings.ts";

/**
 * The OpenID Connect provider. Its metadata is read at the first use, after an hour, and before a browser is sent there.
 * So management starts and serves without the provider. Every operation ends within `deadlineMs`. Failures of the
 * provider are values; their details contain codes only, because messages and causes may contain tokens and claims.
 */
export type Provider = {
  /** Returns the URL of the authorization request. `choosesAccount`: the person chooses among the provider's accounts. */
  authorizationUrl(
    attempt: Attempt,
    options: { choosesAccount: boolean },
  ): Promise<URL | ProviderFailure>;
  /** Exchanges the code in a callback for the account's claims. `parameters` is the query of the callback. */
  exchange(parameters: URLSearchParams, attempt: Attempt): Promise<SignedIn | ProviderFailure>;
  /** Returns the URL of the provider's logout page; undefined if the provider has none. */
  logoutUrl(idToken: string | undefined): Promise<URL | undefined>;
  /** Verifies a token of back-channel logout. */
  verifyLogoutToken(token: string, now: Date): Promise<LogoutToken | ProviderFailure>;
};

/** Secrets of one sign-in. All are random and used once. */
export type Attempt = {
  state: string;
  nonce: string;
  codeVerifier: string;
  startedAt: Date;
  /** True: the person has to authenticate again. */
  isConfirmation: boolean;
};

export type SignedIn = {
  identity: ProviderIdentity;
  /** The session at the provider, for its back-channel logout. */
  providerSession: string | undefined;
  /** For the logout at the provider. */
  idToken: string | undefined;
};

export type ProviderFailure = {
  refused: ClaimsRefusal["refused"] | "provider_unavailable" | "denied" | "not_confirmed";
  /** A code of the protocol or of the library, for the log. */
  detail?: string | undefined;
};

export const callbackPath = "/auth/oidc/callback";

/** Clients get a response within 5 s. */
const deadlineMs = 4_500;
const requestTimeoutSeconds = 4;
const metadataLifetimeMs = 60 * 60_000;
/**
 * Maximum age of the metadata before a browser is sent to the provider. Halyard cannot report a failure that the browser
 * meets there.
 */
const checkedWithinMs = 10_000;
/** Differences between the clocks of the provider and this process, and the time between two checks. */
const clockToleranceSeconds = 30;
/** Longer tokens are not stored: the hint would make the URL too long. */
const maxHintLength = 4_096;

export function createProvider(
  settings: OidcSettings,
  { publicUrl, now }: { publicUrl: URL; now: () => Date },
): Provider {
  const metadataOf = remember(now, () => discoverProvider(settings));
  const discover = () => metadataOf(metadataLifetimeMs);
  const discoverNow = () => metadataOf(checkedWithinMs);

  return {
    authorizationUrl: (attempt, { choosesAccount }) =>
      withinDeadline(async () => {
        const { metadata } = await discoverNow();
        return client.buildAuthorizationUrl(configure(metadata, settings), {
          redirect_uri: new URL(callbackPath, publicUrl).href,
          scope: settings.scopes,
          state: attempt.state,
          nonce: attempt.nonce,
          code_challenge: await client.calculatePKCECodeChallenge(attempt.codeVerifier),
          code_challenge_method: "S256",
          ...(choosesAccount && accountPrompt(metadata)),
          ...(attempt.isConfirmation && { prompt: "login", max_age: "0" }),
        });
      }),

    exchange: (parameters, attempt) =>
      withinDeadline(async () => {
        const { metadata } = await discover();
        const callback = new URL(`${callbackPath}?${parameters}`, publicUrl);
        // Each sign-in has its own configuration, and so reads the keys of the provider. A rotation is never missed.
        const configuration = configure(metadata, settings);
        return exchangeCode({ configuration, callback, attempt, settings, now: now() });
      }),

    async logoutUrl(idToken) {
      const url = await withinDeadline(async () => {
        const { metadata } = await discoverNow();
        if (metadata.end_session_endpoint === undefined) return invalidResponse;
        return client.buildEndSessionUrl(configure(metadata, settings), {
          post_logout_redirect_uri: new URL("/sign-in", publicUrl).href,
          ...(idToken !== undefined && { id_token_hint: idToken }),
        });
      });
      return url instanceof URL ? url : undefined;
    },

    verifyLogoutToken: (token, at) =>
      withinDeadline(async () => {
        const { metadata, keys } = await discover();
        const { issuer, id_token_signing_alg_values_supported: algorithms } = metadata;
        const { clientId } = settings;
        const verified = await verifyLogoutToken(token, {
          ...{ issuer, clientId, keys, now: at },
          algorithms: algorithms ?? defaultAlgorithms,
        });
        return verified ?? invalidResponse;
      }),
  };
}

/** A provider without a choice among accounts shows its login, at which the person can enter another one. */
function accountPrompt({ prompt_values_supported: known }: client.ServerMetadata) {
  const prompts = ["select_account", "login"];
  const prompt = Array.isArray(known) ? prompts.find((each) => known.includes(each)) : prompts[0];
  return prompt === undefined ? {} : { prompt };
}

const invalidResponse: ProviderFailure = { refused: "invalid_response" };

/** The algorithm that every provider supports (OpenID Connect Core 1.0, section 15.1). */
const defaultAlgorithms = ["RS256"];

async function discoverProvider({ issuer, clientId }: OidcSettings) {
  const isInsecure = issuer.startsWith("http:");
  const found = await client.discovery(new URL(issuer), clientId, undefined, client.None(), {
    timeout: requestTimeoutSeconds,
    ...(isInsecure && { execute: [client.allowInsecureRequests] }),
  });
  const metadata = found.serverMetadata();
  // The library accepts other issuers for some providers with many tenants, whose accounts are not distinguished here.
  if (new URL(metadata.issuer).href !== new URL(issuer).href) throw new UnusableProvider("issuer");
  const jwksUrl = URL.parse(metadata.jwks_uri ?? "");
  if (jwksUrl === null || (!isInsecure && jwksUrl.protocol !== "https:"))
    throw new UnusableProvider("jwks_uri");
  const timeoutDuration = requestTimeoutSeconds * 1_000;
  return { metadata, keys: createRemoteJWKSet(jwksUrl, { timeoutDuration }) };
}

function configure(
  metadata: client.ServerMetadata,
  { issuer, clientId, clientSecret }: OidcSettings,
): client.Configuration {
  const configuration = new client.Configuration(
    metadata,
    clientId,
    { [client.clockTolerance]: clockToleranceSeconds },
    authenticationOf(clientSecret, metadata.token_endpoint_auth_methods_supported),
  );
  configuration.timeout = requestTimeoutSeconds;
  client.enableNonRepudiationChecks(configuration);
  if (issuer.startsWith("http:")) client.allowInsecureRequests(configuration);
  return configuration;
}

/** The metadata of the provider lacks what a sign-in needs, or belongs to another issuer. */
class UnusableProvider extends Error {
  override readonly name = "UnusableProvider";
  readonly code: string;

  constructor(member: string) {
    super(`the provider's metadata has an unusable member ${member}`);
    this.code = `METADATA_${member.toUpperCase()}`;
  }
}

/** Prefers the method that all providers support (RFC 6749, section 2.3.1). */
function authenticationOf(
  secret: string | undefined,
  methods: readonly string[] = ["client_secret_basic"],
): client.ClientAuth {
  if (secret === undefined) return client.None();
  return methods.includes("client_secret_basic") || !methods.includes("client_secret_post")
    ? client.ClientSecretBasic(secret)
    : client.ClientSecretPost(secret);
}

async function exchangeCode({
  configuration,
  callback,
  attempt,
  settings,
  now,
}: {
  configuration: client.Configuration;
  callback: URL;
  attempt: Attempt;
  settings: OidcSettings;
  now: Date;
}): Promise<SignedIn | ProviderFailure> {
  const tokens = await client.authorizationCodeGrant(configuration, callback, {
    expectedState: attempt.state,
    expectedNonce: attempt.nonce,
    pkceCodeVerifier: attempt.codeVerifier,
    idTokenExpected: true,
  });
  const claims = tokens.claims() as client.IDToken;
  const nowSeconds = now.getTime() / 1_000;
  if (claims.iat > nowSeconds + clockToleranceSeconds) return { refused: "invalid_response" };
  if (attempt.isConfirmation && !isAuthenticatedSince(attempt.startedAt, claims))
    return { refused: "not_confirmed" };
  const { groupsClaim, admission } = settings;
  const { issuer } = configuration.serverMetadata();
  const mapsGroups = admission.groupsOrganizations.length > 0;
  const isComplete =
    Object.hasOwn(claims, "email") && (!mapsGroups || Object.hasOwn(claims, groupsClaim));
  const more = isComplete ? {} : await readUserInfo(configuration, tokens, claims.sub);
  const identity = readProviderClaims({ ...more, ...claims }, { issuer, groupsClaim });
  if ("refused" in identity) return identity;
  const { id_token: idToken = "" } = tokens;
  return {
    identity,
    providerSession: typeof claims.sid === "string" ? claims.sid : undefined,
    idToken: idToken.length <= maxHintLength ? idToken : undefined,
  };
}

/** Many providers put claims of scopes only there (OpenID Connect Core 1.0, section 5.4). */
async function readUserInfo(
  configuration: client.Configuration,
  { access_token: accessToken }: client.TokenEndpointResponse,
  subject: string,
): Promise<Record<string, unknown>> {
  if (configuration.serverMetadata().userinfo_endpoint === undefined) return {};
  return client.fetchUserInfo(configuration, accessToken, subject);
}

/** Returns whether the person has authenticated after the start of an attempt. A provider may ignore `prompt=login`. */
function isAuthenticatedSince(startedAt: Date, { auth_time: authTime }: client.IDToken): boolean {
  return authTime !== undefined && authTime + clockToleranceSeconds >= startedAt.getTime() / 1_000;
}

/** Runs an operation until the deadline. Failures of the provider are values. */
async function withinDeadline<T extends object>(
  operation: () => Promise<T>,
): Promise<T | ProviderFailure> {
  const ended = new AbortController();
  const late = delay(deadlineMs, { refused: "provider_unavailable", detail: "deadline" } as const, {
    signal: ended.signal,
  });
  try {
    return await Promise.race([operation(), late]);
  } catch (error) {
    return failureOf(error);
  } finally {
    late.catch(() => undefined);
    ended.abort();
  }
}

/** Codes of the library for a provider that does not respond, or responds with an error page. */
const unavailableCodes: readonly (string | undefined)[] = [
  "OAUTH_TIMEOUT",
  "OAUTH_ABORT",
  "OAUTH_RESPONSE_IS_NOT_CONFORM",
  "OAUTH_RESPONSE_IS_NOT_JSON",
  "ERR_JWKS_TIMEOUT",
];

const firstServerError = 500;

function failureOf(error: unknown): ProviderFailure {
  if (error instanceof client.AuthorizationResponseError) {
    const isTemporary = ["server_error", "temporarily_unavailable"].includes(error.error);
    return {
      refused: isTemporary ? "provider_unavailable" : "denied",
      detail: knownCode(error.error),
    };
  }
  if (error instanceof client.ResponseBodyError) {
    const refused = error.status >= firstServerError ? "provider_unavailable" : "invalid_response";
    return { refused, detail: knownCode(error.error) };
  }
  const { code, name } = error as { code?: string; name?: string };
  // The failure of a connection is a `TypeError` of `fetch`.
  const isUnavailable = error instanceof TypeError || unavailableCodes.includes(code);
  return {
    refused: isUnavailable ? "provider_unavailable" : "invalid_response",
    detail: code ?? name,
  };
}

/** Codes of RFC 6749 have these characters. Others could forge lines of a log. */
function knownCode(code: string): string | undefined {
  return /^[a-z_]{1,64}$/.test(code) ? code : undefined;
}

/**
 * Returns a function that returns the last value if it is not older than the given age, and otherwise reads it.
 * Concurrent callers share one read. A failure leaves the earlier value for callers that accept its age.
 */
function remember<T>(now: () => Date, read: () => Promise<T>): (maxAgeMs: number) => Promise<T> {
  let known: { value: T; readAtMs: number } | undefined;
  let reading: Promise<T> | undefined;
  const readNow = async () => {
    try {
      const value = await read();
      known = { value, readAtMs: now().getTime() };
      return value;
    } finally {
      reading = undefined;
    }
  };
  return async (maxAgeMs) => {
    if (known !== undefined && now().getTime() - known.readAtMs < maxAgeMs) return known.value;
    reading ??= readNow();
    return reading;
  };
}
