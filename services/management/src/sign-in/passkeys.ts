import type { AssertedCredential, AttestedCredential } from "@halyard/contracts";
import {
  generateAuthenticationOptions,
  generateRegistrationOptions,
  verifyAuthenticationResponse,
  verifyRegistrationResponse,
} from "@simplewebauthn/server";

/**
 * The ceremonies of WebAuthn, without storage. Passkeys are discoverable, so that a sign-in needs no address. The
 * authenticator verifies its user, so that a passkey alone is sufficient.
 */
export type Passkey = {
  /** The id of the credential, in base64url. */
  id: string;
  personId: string;
  publicKey: Uint8Array;
  /** Number of signatures so far. It stays 0 for passkeys that several devices share. */
  counter: number;
  transports: readonly string[];
};

/** A response that does not verify. `detail` is for the log. */
type Rejected = { rejected: "invalid_response"; detail: string };

/** Time within which the person answers the browser's dialog. */
const timeoutMs = 120_000;

/** Returns what `navigator.credentials.create` receives. The challenge is in base64url. */
export function registrationOptions({
  publicUrl,
  challenge,
  person,
  known,
}: {
  publicUrl: URL;
  challenge: string;
  person: { id: string; email: string; name: string | null };
  /** The person's passkeys, whose authenticators do not create another one. */
  known: readonly Pick<Passkey, "id" | "transports">[];
}) {
  return generateRegistrationOptions({
    rpName: "Halyard",
    rpID: publicUrl.hostname,
    userName: person.email,
    userDisplayName: person.name ?? person.email,
    userID: new TextEncoder().encode(person.id),
    challenge: bytesOf(challenge),
    timeout: timeoutMs,
    attestationType: "none",
    excludeCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
    authenticatorSelection: { residentKey: "required", userVerification: "required" },
    supportedAlgorithmIDs: algorithms,
  });
}

/** Returns what `navigator.credentials.get` receives. Without `known`, the browser offers every passkey of the site. */
export function authenticationOptions({
  publicUrl,
  challenge,
  known = [],
}: {
  publicUrl: URL;
  challenge: string;
  known?: readonly Pick<Passkey, "id" | "transports">[];
}) {
  return generateAuthenticationOptions({
    rpID: publicUrl.hostname,
    challenge: bytesOf(challenge),
    timeout: timeoutMs,
    userVerification: "required",
    allowCredentials: known.map(({ id, transports }) => ({ id, transports: [...transports] })),
  });
}

/** Verifies a new passkey. */
export async function verifyRegistration(
  credential: AttestedCredential,
  expected: { publicUrl: URL; challenge: string },
): Promise<Omit<Passkey, "personId"> | Rejected> {
  const verified = await verifying(() =>
    verifyRegistrationResponse({
      ...expectedOf(expected),
      response: credential as Parameters<typeof verifyRegistrationResponse>[0]["response"],
      supportedAlgorithmIDs: algorithms,
    }),
  );
  if ("rejected" in verified) return verified;
  const registered = verified.registrationInfo?.credential;
  if (registered === undefined) return unverified;
  const { id, publicKey, counter } = registered;
  return { id, publicKey, counter, transports: credential.response.transports ?? [] };
}

/** Verifies that a passkey has signed the challenge. The caller compares the counter that it returns. */
export async function verifyAuthentication(
  credential: AssertedCredential,
  { passkey, ...expected }: { passkey: Passkey; publicUrl: URL; challenge: string },
): Promise<{ counter: number } | Rejected> {
  const verified = await verifying(() =>
    verifyAuthenticationResponse({
      ...expectedOf(expected),
      response: credential as Parameters<typeof verifyAuthenticationResponse>[0]["response"],
      // With 0, the library leaves the comparison of counters to the statement that stores the new one.
      credential: { id: passkey.id, publicKey: new Uint8Array(passkey.publicKey), counter: 0 },
    }),
  );
  if ("rejected" in verified) return verified;
  if (!verified.verified) return unverified;
  return { counter: verified.authenticationInfo.newCounter };
}

/** Returns the challenge that a browser has signed; undefined for other text than client data. */
export function challengeOf(clientDataJson: string): string | undefined {
  try {
    const { challenge } = JSON.parse(Buffer.from(clientDataJson, "base64url").toString());
    return typeof challenge === "string" ? challenge : undefined;
  } catch {
    return undefined;
  }
}

/** EdDSA, ES256 and RS256, in COSE. */
const algorithms = [-8, -7, -257];

const unverified: Rejected = { rejected: "invalid_response", detail: "not verified" };

const bytesOf = (challenge: string) => new Uint8Array(Buffer.from(challenge, "base64url"));

function expectedOf({ publicUrl, challenge }: { publicUrl: URL; challenge: string }) {
  return {
    expectedChallenge: challenge,
    expectedOrigin: publicUrl.origin,
    expectedRPID: publicUrl.hostname,
    requireUserVerification: true,
  };
}

/** The library throws for every response that is malformed or does not verify. */
async function verifying<T extends object>(verify: () => Promise<T>): Promise<T | Rejected> {
  try {
    return await verify();
  } catch (error) {
    return { rejected: "invalid_response", detail: error instanceof Error ? error.message : "" };
  }
}
