import type { Protection, ProtectionInput } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import type { Proposal } from "./proposal.ts";

/**
 * The protection of environments. The use cases that change what an environment answers ask this file whether a change
 * needs an approved change request.
 */

/** Permission for a change of protected environments. Only the application of a change request has it. */
export type Approval = { requestId: string };

/** A refused change, with the change request that would make it. */
export type ApprovalNeeded = Problem & { proposals: readonly Proposal[] };

export const isApprovalNeeded = (problem: Problem): problem is ApprovalNeeded =>
  "proposals" in problem;

/** Without proposals, no draft is made. */
export function approvalNeeded(
  environments: readonly { name: string }[],
  { proposals = [], advice = "" }: { proposals?: readonly Proposal[]; advice?: string } = {},
): ApprovalNeeded {
  const names = environments.map(({ name }) => name).join(", ");
  const subject = environments.length === 1 ? `${names} is protected` : `${names} are protected`;
  const { rejected, message } = createProblem(
    "APPROVAL_001",
    `${subject}: this change needs an approved change request.${advice}`,
  );
  return { rejected, message, proposals };
}

export const protectionOf = ({
  approvals,
  self_approval = false,
  without_approval = [],
}: ProtectionInput): Protection => ({
  approvals,
  self_approval,
  without_approval: [...new Set(without_approval)].sort(),
});

/** Returns whether a change of the protection permits anything that was not permitted before. */
export function isLower(before: Protection | null, after: Protection | null): boolean {
  if (before === null) return false;
  if (after === null) return true;
  return (
    after.approvals < before.approvals ||
    (after.self_approval && !before.self_approval) ||
    after.without_approval.some((exception) => !before.without_approval.includes(exception))
  );
}
