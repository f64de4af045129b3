import type { PlanLimits } from "@halyard/contracts";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import type { Principal } from "../access/principal.ts";
import { attributionOf } from "../audit/attribution.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { insertEnvironments } from "../environments/environment-store.ts";
import { noSuchOrganization } from "../organizations/organization-changes.ts";
import { lockOrganization, updateOrganization } from "../organizations/organization-store.ts";
import type { Write } from "../outbox/write.ts";
import { decideCreateProject, type ProjectDecision } from "./decide-create-project.ts";
import { insertProject } from "./project-store.ts";

/** The use case of projects, which are only ever added. It runs inside a write's transaction. */
export type ProjectChanges = {
  create(
    write: Write,
    principal: Principal,
    organizationId: string,
    request: { name: string; environments?: readonly string[] | undefined },
  ): Promise<Pick<ProjectDecision, "project" | "environments"> | Refusal>;
};

export function createProjectChanges(options: {
  plans: Readonly<Record<string, PlanLimits>>;
  now: () => Date;
  newId: () => string;
}): ProjectChanges {
  const { plans, now, newId } = options;
  return {
    async create({ tx, publish }, principal, organizationId, request) {
      // The organization's lock lets one project through at a time, so that the limit is exact.
      const current = await lockOrganization(tx, organizationId);
      if (current === undefined) return noSuchOrganization();
      const attribution = await attributionOf(tx, principal);
      const occasion = { ...attribution, cause: "manual", now: now(), newId } as const;
      const decision = decideCreateProject(current, request, { plans, occasion });
      if (isRefusal(decision)) return decision;
      if (!(await insertProject(tx, decision.project)))
        return refuse(
          "CONFLICT_001",
          `The organization already has a project with the name ${request.name}.`,
        );
      await Promise.all([
        insertEnvironments(tx, decision.environments),
        insertAuditEntries(tx, decision.audit),
        updateOrganization(tx, decision.organization),
      ]);
      publish(decision.messages);
      return decision;
    },
  };
}
