import type { AuditedChange, ChangeRequestEvent } from "@halyard/contracts";
import type { ChangeContext } from "../access/change-context.ts";
import type { Change } from "../access/routes.ts";
import { auditEntry } from "../audit/audit-log.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { eventToPublish } from "../outbox/outbox-message.ts";
import { readPlace } from "./base.ts";
import type { ChangeRequest } from "./change-request.ts";
import { summarize } from "./describe-changes.ts";

type RequestAction = Extract<AuditedChange["action"], `change_request_${string}`>;

/** Records a step of a change request in the audit log, and publishes its event. A new request has no request before. */
export async function record(
  write: Pick<
    Change,
    "tx" | "context" | "beforeCommit" | "publish" | "countMessages" | "doNotAwait"
  >,
  action: RequestAction,
  request: ChangeRequest,
  before: Pick<ChangeRequest, "status"> | null,
): Promise<void> {
  const context = await write.context();
  const { id, projectId, environmentIds, title, comment, bypassReason } = request;
  const [environmentId = null, ...others] = environmentIds;
  const after = {
    ...{ change_request: id, title, summary: summarize(request.changes) },
    ...(comment !== null && { comment }),
    ...(bypassReason !== null && { bypass_reason: bypassReason }),
  };
  const scope = { projectId, environmentId: others.length === 0 ? environmentId : null };
  const causeId = request.causeId ?? undefined;
  recordAudit(write, [
    auditEntry({ ...context, causeId }, { ...scope, action, before: null, after }),
  ]);
  const event = eventOf(action, request, before);
  if (event === undefined) return;
  const { environments } = await readPlace(write.tx, projectId);
  const affected = environments.filter((each) => environmentIds.includes(each.id));
  write.publish([eventToPublish(requestEvent(event, request, { ...context, affected }))]);
}

type EventName = ChangeRequestEvent["event"];

const eventOfAction: Partial<Record<RequestAction, EventName>> = {
  change_request_opened: "change_request.opened",
  change_request_reopened: "change_request.opened",
  change_request_rejected: "change_request.rejected",
  change_request_applied: "change_request.applied",
  change_request_bypassed: "change_request.bypassed",
  change_request_stale: "change_request.stale",
};

/** An approval that does not suffice has no event. An edit can also make a request approved, if less is affected. */
function eventOf(
  action: RequestAction,
  { status }: ChangeRequest,
  before: Pick<ChangeRequest, "status"> | null,
): EventName | undefined {
  const becomesApproved = status === "approved" && before?.status !== "approved";
  return eventOfAction[action] ?? (becomesApproved ? "change_request.approved" : undefined);
}

function requestEvent(
  event: EventName,
  request: ChangeRequest,
  {
    actor: { id: actorId, email },
    cause,
    newId,
    affected,
  }: ChangeContext & { affected: readonly { id: string; name: string }[] },
): ChangeRequestEvent {
  const { id, title, reason, status, comment, bypassReason } = request;
  return {
    id: newId(),
    event,
    timestamp: request.updatedAt.toISOString(),
    version: request.version,
    organization_id: request.organizationId,
    project_id: request.projectId,
    change_request: {
      ...{ id, title, reason, status, summary: summarize(request.changes) },
      environments: affected.map(({ id: environmentId, name }) => ({ id: environmentId, name })),
    },
    ...(comment !== null && { comment }),
    ...(bypassReason !== null && { bypass_reason: bypassReason }),
    triggered_by: { id: actorId, email },
    cause: cause === "scheduled" ? "scheduled" : "manual",
  };
}
