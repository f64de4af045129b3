import type { Environment, ListedChangeRequest } from "../api/schema.d.ts";
import { whyNot } from "../session/permissions.ts";
import { includes } from "../session/person.ts";
import type { Me } from "../session/session.tsx";
import { currentApprovals, missingText } from "./request-status.ts";

/** Why the reader cannot do something with a change request. The API decides; pages say it before. */

type Request = Pick<
  ListedChangeRequest,
  "status" | "created_by" | "needed" | "approvals" | "content_hash" | "apply_at"
>;
type Reader = { me: Me };

const environmentsOf = ({ needed }: Request, { me }: Reader): Environment[] =>
  me.environments.filter(({ id }) => needed.some(({ environment_id }) => environment_id === id));

/** Returns why nobody can review a request now. */
function notReviewable({ status }: Request): string | undefined {
  if (status === "draft") return "This is a draft: request the change first.";
  return status === "stale" ? "It is stale: rebase it first." : undefined;
}

/** Returns why the reader lacks the role approver. One environment is enough. */
function notApprover(request: Request, reader: Reader): string | undefined {
  const reasons = environmentsOf(request, reader).map((each) => whyNot(reader, "review", each));
  if (reasons.length === 0) return "No environment of this request is protected any more.";
  return reasons.includes(undefined) ? undefined : reasons[0];
}

/** `seenHash` is the hash of the content that the reader has looked at. */
export function whyNotApprove(
  request: Request,
  reader: Reader,
  seenHash: string,
): string | undefined {
  const { me } = reader;
  const reason = notReviewable(request) ?? notApprover(request, reader);
  if (reason !== undefined) return reason;
  const isOwn = request.created_by === me.user.id;
  const mayApproveOwn = environmentsOf(request, reader).some(
    (each) => each.protected?.self_approval === true,
  );
  if (isOwn && !mayApproveOwn)
    return "You have written this request, so another person must approve it.";
  if (seenHash !== request.content_hash) return "The content has changed. Look at it first.";
  return currentApprovals(request).some(({ user_id }) => user_id === me.user.id)
    ? "You have approved this content."
    : undefined;
}

export const mayApprove = (request: Request, reader: Reader): boolean =>
  request.status === "open" && whyNotApprove(request, reader, request.content_hash) === undefined;

export function whyNotReject(request: Request, reader: Reader): string | undefined {
  if (request.status === "draft") return notReviewable(request);
  return notApprover(request, reader);
}

export const whyNotEdit = (reader: Reader): string | undefined => whyNot(reader, "propose");

export function whyNotWithdraw({ created_by: author }: Request, { me }: Reader) {
  if (author === me.user.id || includes(me.roles?.project, "admin")) return undefined;
  return "Only its author and admins of the project withdraw a request.";
}

export function whyNotApply(request: Request, reader: Reader, now: Date): string | undefined {
  const { status, created_by: author, apply_at: at } = request;
  const reason = notReviewable(request);
  if (reason !== undefined) return reason;
  if (status !== "approved") return missingText(request) ?? "It is not approved.";
  if (at !== null && new Date(at) > now)
    return "It is applied at its time by itself. Remove the time to apply it now.";
  if (author === reader.me.user.id || request.needed.length === 0) return undefined;
  return notApprover(request, reader);
}

export function whyNotBypass(request: Request, reader: Reader): string | undefined {
  if (request.status === "approved") return "It is approved: apply it.";
  const reason = notReviewable(request);
  if (reason !== undefined) return reason;
  const reasons = environmentsOf(request, reader).map((each) => whyNot(reader, "protect", each));
  return reasons.find((each) => each !== undefined);
}
