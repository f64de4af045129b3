import type { PlanLimits } from "@halyard/contracts";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { attributionOf, type ChangeContext } from "../access/change-context.ts";
import type { Principal } from "../access/principal.ts";
import { auditEntry } from "../audit/audit-log.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { markDeleted } from "../deletion/deletion-store.ts";
import type { Write } from "../outbox/write.ts";
import {
  decideCreateOrganization,
  decideUpdateOrganization,
  type Organization,
} from "./organization.ts";
import {
  insertOrganization,
  lockOrganization,
  lockProjectsOf,
  lockToDelete,
  updateOrganization,
} from "./organization-store.ts";

/** The use cases of organizations. Each runs inside a write's transaction. */
export type OrganizationChanges = {
  create(write: Write, request: { name: string; plan: string }): Promise<Organization | Refusal>;
  update(
    write: Write,
    organizationId: string,
    request: { name?: string | undefined; plan?: string | undefined },
  ): Promise<Organization | Refusal>;
  remove(
    write: Write,
    principal: Principal,
    organizationId: string,
  ): Promise<Organization | Refusal>;
};

export function createOrganizationChanges(options: {
  plans: Readonly<Record<string, PlanLimits>>;
  now: () => Date;
  newId: () => string;
}): OrganizationChanges {
  const { plans, now, newId } = options;
  return {
    async create(write, request) {
      const decision = decideCreateOrganization(request, { plans, now: now(), newId });
      if (isRefusal(decision)) return decision;
      await insertOrganization(write.tx, decision.organization);
      write.publish(decision.messages);
      return decision.organization;
    },

    async update(write, organizationId, request) {
      const current = await lockOrganization(write.tx, organizationId);
      if (current === undefined) return noSuchOrganization();
      const decision = decideUpdateOrganization(current, request, { plans, now: now() });
      if (decision === "unchanged") return current.organization;
      if (isRefusal(decision)) return decision;
      await updateOrganization(write.tx, decision.organization);
      write.publish(decision.messages);
      return decision.organization;
    },

    async remove({ tx, publish }, principal, organizationId) {
      const organization = await lockToDelete(tx, organizationId);
      if (organization === undefined) return noSuchOrganization();
      const context: ChangeContext = {
        ...(await attributionOf(tx, principal)),
        cause: "manual",
        now: now(),
        newId,
      };
      // Locked one after the other, so that no flag, key or environment is added meanwhile.
      const projects = await lockProjectsOf(tx, organization.id);
      await insertAuditEntries(
        tx,
        projects.map((project) => {
          return auditEntry(context, {
            projectId: project.id,
            environmentId: null,
            action: "project_deleted",
            before: { name: project.name },
            after: null,
          });
        }),
      );
      publish(await markDeleted(tx, organization.id, context.now));
      return organization;
    },
  };
}

export function noSuchOrganization(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such organization.");
}
