import { createProblem, type Problem } from "@halyard/http";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { noSuchUser, type UserAddress } from "../keys/user.ts";
import { lockUser } from "../keys/user-store.ts";
import type { Write } from "../outbox/write.ts";
import { peopleAudit } from "../people/people-audit.ts";
import { type CodePurpose, issueCode, takeCode } from "./one-time-codes.ts";

/** The operator's links, which sign in a user once. The code is in the fragment, which browsers never send. */
type Link = { url: string; expiresAt: Date };

const lifetimeMs = 5 * 60_000;

/** Returns the address of the sign-in page with a code in its fragment. */
export function linkTo(publicUrl: URL, name: CodePurpose, code: string): string {
  return new URL(`/sign-in#${name}=${code}`, publicUrl).href;
}

/** Creates a link for a user. Runs in the transaction of a write. */
export async function createLink(
  change: Change,
  address: UserAddress,
  publicUrl: URL,
): Promise<Link | Problem> {
  const user = await lockUser(change.tx, address);
  if (user === undefined) return noSuchUser;
  if (user.kind === "service")
    return createProblem(
      "VALIDATION_001",
      "/user_id must not be a service user: it never signs in",
    );
  const context = await change.context();
  const expiresAt = new Date(context.now.getTime() + lifetimeMs);
  const { organizationId, id: userId } = user;
  const code = await issueCode(change.tx, {
    ...{ purpose: "link", organizationId, expiresAt },
    content: { organization_id: organizationId, user_id: userId } satisfies UserOfCode,
  });
  const entry = { organizationId, userId };
  recordAudit(change, [peopleAudit("sign_in_link_created", entry, context)]);
  return { url: linkTo(publicUrl, "link", code), expiresAt };
}

/** Uses up the code of a link. Returns its user, locked; a problem if the code is invalid or the user was removed. */
export async function takeLink({ tx }: Write, code: string, now: Date) {
  const user = await takeUser({ tx }, { purpose: "link", code, now });
  return user ?? invalidCode;
}

/** Uses up a code, and locks its user. */
export async function takeUser(
  { tx }: Pick<Write, "tx">,
  { purpose, code, now }: { purpose: "link" | "invitation"; code: string; now: Date },
) {
  const content = await takeCode<UserOfCode>(tx, purpose, code, now);
  return (
    content && lockUser(tx, { organizationId: content.organization_id, userId: content.user_id })
  );
}

type UserOfCode = { organization_id: string; user_id: string };

export const invalidCode = createProblem(
  "NOT_FOUND_001",
  "The link is invalid, expired or already used.",
);
