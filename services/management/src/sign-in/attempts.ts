import { digestOfSecret } from "@halyard/people";
import type { Sql, Transaction } from "@halyard/postgres";
import type { LogoutToken } from "./logout-token.ts";
import type { Attempt } from "./oidc.ts";
import { newCode, readCode, storeCode, takeCode } from "./one-time-codes.ts";

/**
 * Sign-ins at the provider that have begun. Each belongs to one browser, works once, and ends after ten minutes. The
 * state is the code; of the browser's secret, only the digest is stored.
 */
export type StoredAttempt = Attempt & {
  /** URL of the page after the sign-in. */
  returnTo: string;
  /** The session that is confirmed; null for a sign-in. */
  sessionId: string | null;
};

export const attemptLifetimeSeconds = 600;

type Content = {
  nonce: string;
  code_verifier: string;
  started_at: string;
  return_to: string;
  session_id: string | null;
  browser_sha256: string;
};

export function newAttempt(
  startedAt: Date,
  { returnTo, sessionId }: Pick<StoredAttempt, "returnTo" | "sessionId">,
): StoredAttempt {
  const secrets = { state: newCode(), nonce: newCode(), codeVerifier: newCode() };
  return { ...secrets, startedAt, isConfirmation: sessionId !== null, returnTo, sessionId };
}

export async function storeAttempt(
  sql: Sql,
  attempt: StoredAttempt,
  browserSecret: string,
): Promise<void> {
  const content: Content = {
    nonce: attempt.nonce,
    code_verifier: attempt.codeVerifier,
    started_at: attempt.startedAt.toISOString(),
    return_to: attempt.returnTo,
    session_id: attempt.sessionId,
    browser_sha256: digestOfSecret(browserSecret),
  };
  const expiresAt = new Date(attempt.startedAt.getTime() + attemptLifetimeSeconds * 1_000);
  await storeCode(sql, attempt.state, { purpose: "oidc", content, expiresAt });
}

/**
 * Uses up and returns the attempt of a browser; undefined if it does not exist, has ended or is of another browser, which
 * leaves it as it is.
 */
export async function takeAttempt(
  sql: Sql,
  { state, browserSecret, now }: { state: string; browserSecret: string; now: Date },
): Promise<StoredAttempt | undefined> {
  const read = await readCode<Content>(sql, "oidc", state, now);
  if (read?.browser_sha256 !== digestOfSecret(browserSecret)) return undefined;
  const content = await sql.begin((tx) => takeCode<Content>(tx, "oidc", state, now));
  if (content === undefined) return undefined;
  return {
    state,
    nonce: content.nonce,
    codeVerifier: content.code_verifier,
    startedAt: new Date(content.started_at),
    isConfirmation: content.session_id !== null,
    returnTo: content.return_to,
    sessionId: content.session_id,
  };
}

/** Stores the id of a logout token until the token has expired. Returns false if it is stored already. */
export function useTokenOnce(
  tx: Transaction,
  { issuer, tokenId, expiresAt }: LogoutToken,
): Promise<boolean> {
  const code = JSON.stringify([issuer, tokenId]);
  return storeCode(tx, code, { purpose: "logout_token", content: {}, expiresAt });
}
