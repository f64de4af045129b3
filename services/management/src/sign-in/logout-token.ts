import { errors, type JWTVerifyGetKey, jwtVerify } from "jose";

/** A verified token of back-channel logout, which ends the sessions of one sign-in at the provider, or of an account. */
export type LogoutToken = {
  issuer: string;
  /** The session at the provider. Without one, all sessions of the subject end. */
  providerSession: string | undefined;
  subject: string | undefined;
  /** Each id is accepted once. */
  tokenId: string;
  /** End of the token's validity. Its id is stored until then. */
  expiresAt: Date;
};

const logoutEvent = "http://schemas.openid.net/event/backchannel-logout";

/** Bounds the storage of token ids. Providers send tokens immediately after issuing them. */
const maxAgeSeconds = 600;
const toleranceSeconds = 30;

/** Public-key signatures. Excludes `none`, and algorithms that sign with the client secret. */
const signatureAlgorithm = /^(?:(?:RS|PS|ES)(?:256|384|512)|EdDSA|Ed25519)$/;

/**
 * Verifies a token by OpenID Connect Back-Channel Logout 1.0, section 2.6. Returns undefined for an invalid one. Throws
 * if the keys of the provider cannot be read.
 */
export async function verifyLogoutToken(
  token: string,
  facts: {
    issuer: string;
    clientId: string;
    algorithms: readonly string[];
    keys: JWTVerifyGetKey;
    now: Date;
  },
): Promise<LogoutToken | undefined> {
  const claims = await readClaims(token, facts);
  if (claims === undefined) return undefined;
  const { sid, sub, jti, iat = 0, events } = claims;
  if (Object.hasOwn(claims, "nonce") || !isText(jti) || !isLogout(events)) return undefined;
  if (!(isOptionalText(sid) && isOptionalText(sub)) || (sid ?? sub) === undefined) return undefined;
  const expiresAt = new Date((iat + maxAgeSeconds + toleranceSeconds) * 1_000);
  return { issuer: facts.issuer, providerSession: sid, subject: sub, tokenId: jti, expiresAt };
}

async function readClaims(
  token: string,
  { issuer, clientId, algorithms, keys, now }: Parameters<typeof verifyLogoutToken>[1],
) {
  try {
    const { payload, protectedHeader } = await jwtVerify(token, keys, {
      issuer,
      audience: clientId,
      algorithms: algorithms.filter((name) => signatureAlgorithm.test(name)),
      requiredClaims: ["iss", "aud", "iat", "exp", "jti", "events"],
      maxTokenAge: maxAgeSeconds,
      clockTolerance: toleranceSeconds,
      currentDate: now,
    });
    return isLogoutType(protectedHeader.typ) ? payload : undefined;
  } catch (error) {
    if (error instanceof errors.JOSEError && !(error instanceof errors.JWKSTimeout))
      return undefined;
    throw error;
  }
}

/** Accepts the general type, and none, because providers that follow earlier drafts send them. */
function isLogoutType(type = "JWT"): boolean {
  return ["logout+jwt", "application/logout+jwt", "jwt"].includes(type.toLowerCase());
}

function isLogout(events: unknown): boolean {
  if (typeof events !== "object" || events === null || !Object.hasOwn(events, logoutEvent))
    return false;
  const event = (events as Record<string, unknown>)[logoutEvent];
  return typeof event === "object" && event !== null && !Array.isArray(event);
}

const isText = (value: unknown): value is string => typeof value === "string" && value !== "";

const isOptionalText = (value: unknown): value is string | undefined =>
  value === undefined || isText(value);
