import { keyRefusals } from "@halyard/api-keys";
import type { Transaction } from "@halyard/postgres";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import { attributionOf, type ChangeContext } from "../access/change-context.ts";
import { noSuchProject, type Principal, reachesProject } from "../access/principal.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { markDeleted } from "../deletion/deletion-store.ts";
import { createEnvironmentFills } from "../flags/environment-fills.ts";
import { entryOf } from "../outbox/outbox-message.ts";
import type { Write } from "../outbox/write.ts";
import {
  decideCreateEnvironment,
  type Environment,
  environmentAudit,
  environmentEntry,
  noSuchEnvironment,
} from "./environment.ts";
import {
  countEnvironments,
  findEnvironment,
  insertEnvironments,
  lockParentProject,
  renameEnvironment,
} from "./environment-store.ts";

type EnvironmentAddress = { projectId: string; environmentId: string };

/** The use cases of environments. Each runs inside a write's transaction. */
export type EnvironmentChanges = {
  create(
    write: Write,
    principal: Principal,
    projectId: string,
    request: { name: string },
  ): Promise<Environment | Refusal>;
  rename(
    write: Write,
    principal: Principal,
    address: EnvironmentAddress,
    request: { name?: string | undefined },
  ): Promise<Environment | Refusal>;
  remove(
    write: Write,
    principal: Principal,
    address: EnvironmentAddress,
  ): Promise<Environment | Refusal>;
};

export function createEnvironmentChanges(options: {
  now: () => Date;
  newId: () => string;
}): EnvironmentChanges {
  const fills = createEnvironmentFills(options);

  async function contextOf(tx: Transaction, principal: Principal): Promise<ChangeContext> {
    const { now, newId } = options;
    return { ...(await attributionOf(tx, principal)), cause: "manual", now: now(), newId };
  }

  return {
    async create(write, principal, projectId, request) {
      const { tx } = write;
      if (!reachesProject(principal, projectId)) return noSuchProject();
      if (principal.kind === "key" && principal.key.environmentOnly)
        return keyRefusals.otherEnvironment;
      // The lock lets one environment through at a time, so that the limit is exact.
      const project = await lockParentProject(tx, projectId);
      if (project === undefined) return noSuchProject();
      const [context, environmentCount] = await Promise.all([
        contextOf(tx, principal),
        countEnvironments(tx, project.id),
      ]);
      const decision = decideCreateEnvironment({ project, environmentCount }, request, context);
      if (isRefusal(decision)) return decision;
      const { environment } = decision;
      if (!(await insertEnvironments(tx, [environment]))) return nameTaken(request.name);
      await insertAuditEntries(tx, decision.audit);
      write.publish(decision.messages);
      const { organizationId } = project;
      await fills.start(write, { environment, organizationId, createdBy: context.actor.id });
      return environment;
    },

    async rename({ tx, publish }, principal, address, { name }) {
      const found = await lockEnvironment(tx, address);
      if (isRefusal(found)) return found;
      const { environment, organizationId } = found;
      if (name === undefined || name === environment.name) return environment;
      const context = await contextOf(tx, principal);
      const version = environment.version + 1;
      const renamed = { ...environment, name, version, updatedAt: context.now };
      if (!(await renameEnvironment(tx, renamed))) return nameTaken(name);
      const names = { before: { name: environment.name }, after: { name } };
      await insertAuditEntries(tx, [
        environmentAudit("environment_renamed", environment, names, context),
      ]);
      publish([entryOf(environmentEntry({ ...renamed, organizationId }))]);
      return renamed;
    },

    async remove({ tx, publish }, principal, address) {
      const found = await lockEnvironment(tx, address);
      if (isRefusal(found)) return found;
      const { environment } = found;
      const context = await contextOf(tx, principal);
      const names = { before: { name: environment.name }, after: null };
      await insertAuditEntries(tx, [
        environmentAudit("environment_deleted", environment, names, context),
      ]);
      publish(await markDeleted(tx, environment.id, context.now));
      return environment;
    },
  };
}

/** Reads an environment under the lock of its project. */
async function lockEnvironment(
  tx: Transaction,
  address: EnvironmentAddress,
): Promise<{ environment: Environment; organizationId: string } | Refusal> {
  const project = await lockParentProject(tx, address.projectId);
  if (project === undefined) return noSuchEnvironment();
  const environment = await findEnvironment(tx, address);
  if (environment === undefined) return noSuchEnvironment();
  return { environment, organizationId: project.organizationId };
}

function nameTaken(name: string): Refusal {
  return refuse("CONFLICT_001", `The project already has an environment with the name ${name}.`);
}
