import { createProblem, type Problem } from "@halyard/http";
import { type Caller, includes, missingRole } from "@halyard/people";
import type { Principal } from "../access/principal.ts";
import { checkMayProtect } from "../tenancy/protect-environment.ts";
import type { Place } from "./base.ts";
import type { ChangeRequest } from "./change-request.ts";

/**
 * The roles that the application of a request needs in addition to its approvals. Approvals permit changes of protected
 * environments only.
 */
type Affecting = Pick<ChangeRequest, "createdBy" | "projectId" | "environmentIds" | "changes">;

/** The author or an approver applies. */
export function checkMayApply(
  request: Affecting,
  principal: Principal,
  place: Place,
): Problem | undefined {
  if (principal.kind === "operator") return operatorBypasses;
  const { projectId, createdBy, environmentIds } = request;
  const { userId, rights, via, scope } = principal.key;
  if (via === "key" && scope !== "write") return needsWrite;
  const guarded = environmentIds.filter((id) => isProtected(place, id));
  const isApprover = guarded.some((environmentId) =>
    includes(rights.at({ projectId, environmentId }), "approver"),
  );
  if (guarded.length > 0 && createdBy !== userId && !isApprover)
    return missingRole({ role: "approver", at: "environment" }, rights.at({ projectId }));
  return checkUnprotected(request, principal.key, place);
}

/** Checks the right to make the changes that no approval covers: those of environments that are not protected. */
export function checkUnprotected(
  { projectId, environmentIds, changes }: Affecting,
  { rights }: Pick<Caller, "rights">,
  place: Place,
): Problem | undefined {
  const open = environmentIds.filter((id) => !isProtected(place, id));
  for (const environmentId of open) {
    const held = rights.at({ projectId, environmentId });
    if (!includes(held, "editor")) return missingRole({ role: "editor", at: "environment" }, held);
  }
  const held = rights.at({ projectId });
  const isCovered = environmentIds.length > 0 && open.length === 0;
  return isOfProject(changes) && !isCovered && !includes(held, "editor")
    ? missingRole({ role: "editor", at: "project" }, held)
    : undefined;
}

export function checkMayBypass(
  { projectId, environmentIds, changes }: Affecting,
  principal: Principal,
  now: () => Date,
): Problem | undefined {
  if (principal.kind === "operator") return undefined;
  const held = principal.key.rights.at({ projectId });
  if (isOfProject(changes) && !includes(held, "admin"))
    return missingRole({ role: "admin", at: "project" }, held);
  for (const id of environmentIds) {
    const problem = checkMayProtect(principal, { id, projectId }, now);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

const isProtected = ({ environments }: Place, environmentId: string): boolean =>
  environments.some(({ id, protection }) => id === environmentId && protection !== null);

/** Returns whether changes include one of something that all environments share. */
const isOfProject = (changes: Affecting["changes"]): boolean =>
  changes.some(({ kind }) => kind !== "state" && kind !== "protection");

const needsWrite = createProblem(
  "AUTH_002",
  "A key with the scope read or propose cannot apply change requests.",
);

const operatorBypasses = createProblem(
  "AUTH_002",
  "The operator applies a change request only by a bypass, with a reason.",
);
