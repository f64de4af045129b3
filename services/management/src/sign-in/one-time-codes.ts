import { createHash, randomBytes } from "node:crypto";
import { json, type Sql, type Transaction } from "@halyard/postgres";

/**
 * One-time codes of sign-in links, invitations and begun sign-ins. The database contains only the digest of a code, so
 * that its readers cannot use them.
 */
export type CodePurpose = "link" | "invitation" | "oidc" | "passkey" | "logout_token";

const codeBytes = 32;

type NewCode = {
  purpose: CodePurpose;
  content: Record<string, unknown>;
  expiresAt: Date;
  /** The organization of an invitation or a link. Its removal removes the code. */
  organizationId?: string;
};

/** Returns a random code of 43 characters. */
export const newCode = (): string => randomBytes(codeBytes).toString("base64url");

/** Issues a random code. */
export async function issueCode(tx: Sql | Transaction, code: NewCode): Promise<string> {
  const text = newCode();
  await storeCode(tx, text, code);
  return text;
}

/** Stores a given code. Returns false if it is stored already. */
export async function storeCode(
  tx: Sql | Transaction,
  text: string,
  { purpose, content, expiresAt, organizationId }: NewCode,
): Promise<boolean> {
  const stored = await tx`
    insert into one_time_codes (digest, purpose, content, organization_id, expires_at)
    values (${digestOf(purpose, text)}, ${purpose}, ${json(content)}, ${organizationId ?? null},
      ${expiresAt})
    on conflict do nothing`;
  return stored.count > 0;
}

/** Uses up a code and returns its content. Of two requests at the same time, one gets it. */
export async function takeCode<Content extends Record<string, unknown>>(
  tx: Transaction,
  purpose: CodePurpose,
  text: string,
  now: Date,
): Promise<Content | undefined> {
  const [taken] = await tx<{ content: Content; expiresAt: Date }[]>`
    delete from one_time_codes where digest = ${digestOf(purpose, text)}
    returning content, expires_at as "expiresAt"`;
  return taken !== undefined && taken.expiresAt > now ? taken.content : undefined;
}

/** Returns the content of a code without using it up. */
export async function readCode<Content extends Record<string, unknown>>(
  sql: Sql | Transaction,
  purpose: CodePurpose,
  text: string,
  now: Date,
): Promise<Content | undefined> {
  const [found] = await sql<{ content: Content }[]>`
    select content from one_time_codes
    where digest = ${digestOf(purpose, text)} and expires_at > ${now}`;
  return found?.content;
}

/** The digest covers the purpose, so that a code works for one purpose only. */
function digestOf(purpose: CodePurpose, text: string): string {
  return createHash("sha256").update(`${purpose} ${text}`).digest("hex");
}
