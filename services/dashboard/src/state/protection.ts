import type { Environment, Protection } from "../api/schema.d.ts";
import { changed, type Difference } from "./difference.ts";
import { capitalized, joined } from "./words.ts";

/** The protection of environments: changes of what they answer need an approved change request. */

export type Exception = Protection["without_approval"][number];

/** What each exception permits without an approval. */
export const exceptionTexts: Readonly<Record<Exception, string>> = {
  off: "turning one flag off",
  rollback: "rolling back to an approved state",
};
export const exceptions = Object.keys(exceptionTexts) as Exception[];

export const approvalsText = (approvals: number): string =>
  approvals === 1 ? "1 approval" : `${approvals} approvals`;

/** Describes a protection: "2 approvals, none for turning one flag off". */
export function protectionText(protection: Protection | null): string {
  if (protection === null) return "not protected";
  const { approvals, self_approval: isBySelf, without_approval: free } = protection;
  const freeText = joined(
    exceptions.filter((each) => free.includes(each)).map((each) => exceptionTexts[each]),
    "and",
  );
  return [
    approvalsText(approvals),
    ...(isBySelf ? ["also by authors"] : []),
    ...(free.length > 0 ? [`none for ${freeText}`] : []),
  ].join(", ");
}

export const protectionDifferences = (
  before: Protection | null,
  after: Protection | null,
): Difference[] =>
  changed("Protection", capitalized(protectionText(before)), capitalized(protectionText(after)));

/** Returns whether a change of a protection permits anything that was not permitted before. */
export function isLower(before: Protection | null, after: Protection | null): boolean {
  if (before === null) return false;
  if (after === null) return true;
  return (
    after.approvals < before.approvals ||
    (after.self_approval && !before.self_approval) ||
    after.without_approval.some((each) => !before.without_approval.includes(each))
  );
}

type Protectable = Pick<Environment, "protected">;

/** Returns whether a change in an environment needs an approved change request. */
export const needsApproval = ({ protected: protection }: Protectable, exception?: Exception) =>
  protection !== null &&
  (exception === undefined || !protection.without_approval.includes(exception));

/** Returns the first protected environment. */
export const protectedAmong = <Place extends Protectable>(
  environments: readonly Place[],
): Place | undefined => environments.find((each) => needsApproval(each));
