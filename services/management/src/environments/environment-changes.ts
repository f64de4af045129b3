import { keyRefusals } from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";
import type { Principal } from "../access/principal.ts";
import { actorOf } from "../audit/attribution.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { insertHistory, insertStates } from "../flags/flag-store.ts";
import type { Write } from "../outbox/write.ts";
import { noSuchProject, reachesProject } from "../projects/project-access.ts";
import { lockProject } from "../projects/project-store.ts";
import { decideCreateEnvironment } from "./decide-create-environment.ts";
import type { Environment } from "./environment.ts";
import { insertEnvironments } from "./environment-store.ts";
import { lockProjectFlags } from "./project-flags.ts";

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
  return {
    async create({ tx, publish }, principal, projectId, request) {
      if (!reachesProject(principal, projectId)) return noSuchProject();
      if (principal.kind === "key" && principal.key.environmentOnly)
        return keyRefusals.otherEnvironment;
      const project = await lockProject(tx, projectId);
      if (project === undefined) return noSuchProject();
      const actor = await actorOf(tx, principal);
      const flags = await lockProjectFlags(tx, project);
      const occasion = {
        actor,
        cause: "manual",
        now: options.now(),
        newId: options.newId,
      } as const;
      const decision = decideCreateEnvironment({ project, flags }, request, occasion);
      if (!(await insertEnvironments(tx, [decision.environment])))
        return refuse(
          "CONFLICT_001",
          `The project already has an environment with the name ${request.name}.`,
        );
      await Promise.all([
        insertStates(tx, decision.states),
        insertHistory(tx, decision.history),
        insertAuditEntries(tx, decision.audit),
      ]);
      publish(decision.messages);
      return decision.environment;
    },
  };
}
