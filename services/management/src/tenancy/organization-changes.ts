import { isProblem, type Problem } from "@halyard/http";
import type { Change } from "../access/routes.ts";
import { auditEntry } from "../audit/audit-log.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { markDeleted } from "./deletion-store.ts";
import { listEnvironmentsOf } from "./environment-store.ts";
import {
  decideCreateOrganization,
  decideUpdateOrganization,
  noSuchOrganization,
  type Organization,
} from "./organization.ts";
import {
  insertOrganization,
  lockOrganization,
  lockProjectsOf,
  lockToDelete,
  updateOrganization,
} from "./organization-store.ts";
import { lockPlans } from "./plans.ts";
import { bypassed, checkDeletion } from "./protect-environment.ts";

/** The use cases of organizations. Each runs in the transaction of a write. */

export async function createOrganization(
  { tx, publish, now, newId }: Change,
  request: { name: string; plan: string },
): Promise<Organization | Problem> {
  const plans = await lockPlans(tx);
  const decision = decideCreateOrganization(request, { plans, now: now(), newId });
  if (isProblem(decision)) return decision;
  await insertOrganization(tx, decision.organization);
  publish(decision.messages);
  return decision.organization;
}

export async function changeOrganization(
  { tx, publish, now }: Change,
  organizationId: string,
  request: { name?: string | undefined; plan?: string | undefined },
): Promise<Organization | Problem> {
  const current = await lockOrganization(tx, organizationId);
  if (current === undefined) return noSuchOrganization;
  const plans = await lockPlans(tx);
  const decision = decideUpdateOrganization(current, request, { plans, now: now() });
  if (decision === "unchanged") return current.organization;
  if (isProblem(decision)) return decision;
  await updateOrganization(tx, decision.organization);
  publish(decision.messages);
  return decision.organization;
}

export async function removeOrganization(
  change: Change,
  organizationId: string,
  bypassReason: string | undefined,
): Promise<Organization | Problem> {
  const { tx } = change;
  const organization = await lockToDelete(tx, organizationId);
  if (organization === undefined) return noSuchOrganization;
  const context = await change.context();
  // The locks prevent the addition of a flag, key or environment until the transaction ends.
  const projects = await lockProjectsOf(tx, organization.id);
  const environments = await listEnvironmentsOf(tx, organization.id);
  const refused = checkDeletion(change, environments, bypassReason);
  if (refused !== undefined) return refused;
  const after = bypassed(bypassReason);
  recordAudit(
    change,
    projects.map(({ id: projectId, name }) => {
      const difference = { action: "project_deleted", before: { name }, after } as const;
      return auditEntry(context, { projectId, environmentId: null, ...difference });
    }),
  );
  change.publish(await markDeleted(tx, organization.id, context.now));
  return organization;
}
