import type { AuditedChange } from "@halyard/contracts";
import type { Change } from "../access/routes.ts";
import { auditEntry } from "../audit/audit-log.ts";
import { recordAudit } from "../audit/audit-store.ts";
import type { ChangeRequest } from "./change-request.ts";
import { describeChanges } from "./describe-changes.ts";

export type RequestAction = Extract<AuditedChange["action"], `change_request_${string}`>;

/** Records a step of a change request in the audit log. */
export async function record(
  write: Pick<
    Change,
    "tx" | "context" | "beforeCommit" | "publish" | "countMessages" | "doNotAwait"
  >,
  action: RequestAction,
  request: ChangeRequest,
): Promise<void> {
  const context = await write.context();
  const { id, projectId, environmentIds, title, comment, bypassReason } = request;
  const [environmentId = null, ...others] = environmentIds;
  const after = {
    ...{ change_request: id, title, summary: describeChanges(request.changes).slice(0, 4_000) },
    ...(comment !== null && { comment }),
    ...(bypassReason !== null && { bypass_reason: bypassReason }),
  };
  const scope = { projectId, environmentId: others.length === 0 ? environmentId : null };
  const causeId = request.causeId ?? undefined;
  recordAudit(write, [
    auditEntry({ ...context, causeId }, { ...scope, action, before: null, after }),
  ]);
}
