import { keyRefusals } from "@halyard/api-keys";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import type { Principal } from "../access/principal.ts";
import { attributionOf } from "../audit/attribution.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import type { Write } from "../outbox/write.ts";
import { noSuchProject, reachesProject } from "../projects/project-access.ts";
import { lockProject } from "../projects/project-store.ts";
import { decideCreateEnvironment } from "./decide-create-environment.ts";
import type { Environment } from "./environment.ts";
import { countEnvironments, insertEnvironments } from "./environment-store.ts";
import { createEnvironmentFills } from "./fill-environment.ts";

/** The use case of environments, which are only ever added. It runs inside a write's transaction. */
export type EnvironmentChanges = {
  create(
    write: Write,
    principal: Principal,
    projectId: string,
    request: { name: string },
  ): Promise<Environment | Refusal>;
};

export function createEnvironmentChanges(options: {
  now: () => Date;
  newId: () => string;
}): EnvironmentChanges {
  const fills = createEnvironmentFills(options);
  return {
    async create(write, principal, projectId, request) {
      const { tx } = write;
      if (!reachesProject(principal, projectId)) return noSuchProject();
      if (principal.kind === "key" && principal.key.environmentOnly)
        return keyRefusals.otherEnvironment;
      // The lock lets one environment through at a time, so that the limit is exact.
      const project = await lockProject(tx, projectId);
      if (project === undefined) return noSuchProject();
      const [attribution, environmentCount] = await Promise.all([
        attributionOf(tx, principal),
        countEnvironments(tx, project.id),
      ]);
      const decision = decideCreateEnvironment({ project, environmentCount }, request, {
        ...attribution,
        cause: "manual",
        now: options.now(),
        newId: options.newId,
      });
      if (isRefusal(decision)) return decision;
      const { environment } = decision;
      if (!(await insertEnvironments(tx, [environment])))
        return refuse(
          "CONFLICT_001",
          `The project already has an environment with the name ${request.name}.`,
        );
      await insertAuditEntries(tx, decision.audit);
      write.publish(decision.messages);
      const { organizationId } = project;
      await fills.start(write, { environment, organizationId, createdBy: attribution.actor.id });
      return environment;
    },
  };
}
