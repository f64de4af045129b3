import { createProblem, isProblem, type Problem } from "@halyard/http";
import { includes, missingRole } from "@halyard/people";
import { type ChangeRequest, type GivenApproval, nextStep } from "./change-request.ts";
import { record } from "./record-request.ts";
import {
  checkTime,
  lockPending,
  type RequestAndStanding,
  type RequestWrite,
  settle,
} from "./request-changes.ts";
import { updateRequest } from "./request-store.ts";
import { noStanding } from "./standing.ts";

/** Approval, rejection and withdrawal of change requests. */

/** Approves the content of a request that the reviewer has seen, by its hash. */
export async function approve(
  change: RequestWrite,
  id: string,
  contentHash: string,
): Promise<RequestAndStanding | Problem> {
  const { key } = change.principal;
  const { rights, userId, session } = key;
  const found = await lockPending(change, id);
  if (isProblem(found)) return found;
  const { request, place, standing } = found;
  if (request.status === "draft") return notOpen;
  if (standing.differences.length > 0 || request.status === "stale") return isStale(standing);
  if (request.contentHash !== contentHash) return otherContent;
  const past = checkTime(request, change.now());
  if (past !== undefined) return past;
  const { projectId } = request;
  const mayApprove = standing.needed.filter(
    ({ environment: { id: environmentId, protection } }) => {
      const held = rights.at({ projectId, environmentId });
      const isOwn = request.contributors.includes(userId);
      return includes(held, "approver") && (!isOwn || protection?.self_approval === true);
    },
  );
  if (mayApprove.length === 0) return cannotApprove(request, userId);
  const approval: GivenApproval = {
    ...{ user_id: userId, groups: session?.groups ?? [] },
    environment_ids: mayApprove.map(({ environment }) => environment.id),
    ...{ at: change.now().toISOString(), content_hash: contentHash },
  };
  const others = request.approvals.filter(({ user_id }) => user_id !== userId);
  const approved = {
    ...{ ...request, approvals: [...others, approval] },
    ...nextStep(request, change.now()),
  };
  const settled = await settle(change, approved, place);
  await updateRequest(change.tx, settled.request);
  await record(change, "change_request_approved", settled.request, request);
  return settled;
}

/** Rejects a request, which ends it. */
export async function reject(
  change: RequestWrite,
  id: string,
  comment: string | undefined,
): Promise<RequestAndStanding | Problem> {
  const { rights, userId } = change.principal.key;
  const found = await lockPending(change, id);
  if (isProblem(found)) return found;
  const { request, place, standing } = found;
  if (request.status === "draft") return notOpen;
  const { projectId } = request;
  const guarded = standing.needed.map(({ environment }) => environment.id);
  const reviewed = guarded.length === 0 ? request.environmentIds : guarded;
  const roles = reviewed.map((environmentId) => rights.at({ projectId, environmentId }));
  if (!roles.some((held) => includes(held, "approver")))
    return missingRole({ role: "approver", at: "environment" }, roles[0]);
  return end(
    change,
    { ...request, status: "rejected", comment: comment ?? "", closedBy: userId },
    place,
  );
}

/** Withdraws a request: by its author, or by an admin. */
export async function withdraw(
  change: RequestWrite,
  id: string,
): Promise<RequestAndStanding | Problem> {
  const { rights, userId, projectId, via, scope } = change.principal.key;
  if (via === "key" && scope === "read") return cannotWithdraw;
  const found = await lockPending(change, id);
  if (isProblem(found)) return found;
  const { request, place } = found;
  if (request.createdBy !== userId && !includes(rights.at({ projectId }), "admin"))
    return missingRole({ role: "admin", at: "project" }, rights.at({ projectId }));
  return end(change, { ...request, status: "withdrawn", closedBy: userId }, place);
}

async function end(
  change: RequestWrite,
  request: ChangeRequest,
  place: RequestAndStanding["place"],
): Promise<RequestAndStanding> {
  const ended = { ...request, ...nextStep(request, change.now()) };
  await updateRequest(change.tx, ended);
  const action =
    request.status === "rejected" ? "change_request_rejected" : "change_request_withdrawn";
  await record(change, action, ended, null);
  return { request: ended, standing: noStanding, place };
}

const cannotWithdraw = createProblem(
  "AUTH_002",
  "A key with the scope read cannot withdraw change requests.",
);

const notOpen = createProblem("CONFLICT_001", "The change request is a draft. Open it first.");

export const isStale = ({ differences }: { differences: readonly string[] }): Problem =>
  createProblem(
    "CONFLICT_001",
    `The change request is stale: ${differences.join(", ") || "something"} changed since it was made. Rebase it, and approve it again.`,
  );

const otherContent = createProblem(
  "CONFLICT_003",
  "The content of the change request is not the one that you have seen. Read it again.",
);

const cannotApprove = ({ contributors }: ChangeRequest, userId: string): Problem =>
  createProblem(
    "AUTH_002",
    contributors.includes(userId)
      ? "You have contributed to this change request, so another person must approve it."
      : "This needs the role approver in a protected environment that the change request affects.",
  );
