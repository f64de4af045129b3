import { keyProblems } from "@halyard/api-keys";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Transaction } from "@halyard/postgres";
import { noSuchProject, reachesProject } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { startFill } from "../flags/environment-fills.ts";
import { entryToPublish } from "../outbox/outbox-message.ts";
import { markDeleted } from "./deletion-store.ts";
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
  updateEnvironmentName,
} from "./environment-store.ts";

/** The use cases of environments. Each runs in the transaction of a write. */
type Address = { projectId: string; environmentId: string };

export async function createEnvironment(
  change: Change,
  { projectId }: { projectId: string },
  request: { name: string },
): Promise<Environment | Problem> {
  const { tx, principal } = change;
  if (!reachesProject(principal, projectId)) return noSuchProject;
  if (principal.kind === "key" && principal.key.environmentOnly)
    return keyProblems.otherEnvironment;
  // The lock serializes the creation of environments, so that concurrent requests cannot exceed the limit.
  const project = await lockParentProject(tx, projectId);
  if (project === undefined) return noSuchProject;
  const [context, environmentCount] = await Promise.all([
    change.context(),
    countEnvironments(tx, project.id),
  ]);
  const decision = decideCreateEnvironment({ project, environmentCount }, request, context);
  if (isProblem(decision)) return decision;
  const { environment } = decision;
  if (!(await insertEnvironments(tx, [environment]))) return nameTaken(request.name);
  recordAudit(change, decision.audit);
  change.publish(decision.messages);
  const { organizationId } = project;
  const fill = { environment, organizationId, createdBy: context.actor.id };
  await startFill(change, fill);
  return environment;
}

export async function renameEnvironment(
  change: Change,
  address: Address,
  { name }: { name?: string | undefined },
): Promise<Environment | Problem> {
  const { tx } = change;
  const found = await lockEnvironment(tx, address);
  if (isProblem(found)) return found;
  const { environment, organizationId } = found;
  if (name === undefined || name === environment.name) return environment;
  const context = await change.context();
  const version = environment.version + 1;
  const renamed = { ...environment, name, version, updatedAt: context.now };
  if (!(await updateEnvironmentName(tx, renamed))) return nameTaken(name);
  const names = { before: { name: environment.name }, after: { name } };
  recordAudit(change, [environmentAudit("environment_renamed", environment, names, context)]);
  change.publish([entryToPublish(environmentEntry({ ...renamed, organizationId }))]);
  return renamed;
}

export async function removeEnvironment(
  change: Change,
  address: Address,
): Promise<Environment | Problem> {
  const { tx } = change;
  const found = await lockEnvironment(tx, address);
  if (isProblem(found)) return found;
  const { environment } = found;
  const context = await change.context();
  const names = { before: { name: environment.name }, after: null };
  recordAudit(change, [environmentAudit("environment_deleted", environment, names, context)]);
  change.publish(await markDeleted(tx, environment.id, context.now));
  return environment;
}

/** Locks the project of an environment, then reads the environment. */
async function lockEnvironment(
  tx: Transaction,
  address: Address,
): Promise<{ environment: Environment; organizationId: string } | Problem> {
  const project = await lockParentProject(tx, address.projectId);
  if (project === undefined) return noSuchEnvironment;
  const environment = await findEnvironment(tx, address);
  if (environment === undefined) return noSuchEnvironment;
  return { environment, organizationId: project.organizationId };
}

function nameTaken(name: string): Problem {
  return createProblem(
    "CONFLICT_001",
    `The project already has an environment with the name ${name}.`,
  );
}
