import { isDeepStrictEqual } from "node:util";
import { keyProblems } from "@halyard/api-keys";
import type { CreateEnvironment, UpdateEnvironment } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Transaction } from "@halyard/postgres";
import { noSuchProject, reachesProject } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { checkAddition } from "../flags/configuration-limit.ts";
import { momentAfter } from "../flags/decide-flag.ts";
import { startFill } from "../flags/environment-fills.ts";
import { sumInitialBytes } from "../flags/flag-store.ts";
import { entryToPublish, eventToPublish } from "../outbox/outbox-message.ts";
import { markDeleted } from "./deletion-store.ts";
import {
  decideCreateEnvironment,
  type Environment,
  environmentAudit,
  environmentEntry,
  noSuchEnvironment,
  settingsOf,
} from "./environment.ts";
import {
  countEnvironments,
  findEnvironment,
  insertEnvironments,
  lockParentProject,
  updateEnvironment,
} from "./environment-store.ts";
import {
  bypassed,
  checkDeletion,
  checkProtecting,
  type EnvironmentWrite,
  protectionEvent,
  requestedProtection,
} from "./protect-environment.ts";

/** The use cases of environments. Each runs in the transaction of a write. */
type Address = { projectId: string; environmentId: string };

export async function createEnvironment(
  change: Change,
  { projectId }: { projectId: string },
  request: CreateEnvironment,
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
  const { organizationId } = project;
  const addition = await sumInitialBytes(tx, project.id);
  const tooLarge = await checkAddition(tx, organizationId, addition);
  if (tooLarge !== undefined) return tooLarge;
  const { environment } = decision;
  if (!(await insertEnvironments(tx, [environment]))) return nameTaken(request.name);
  recordAudit(change, decision.audit);
  change.publish(decision.messages);
  const fill = { environment, organizationId, createdBy: context.actor.id };
  await startFill(change, fill);
  return environment;
}

/** Changes the name, the mark or the protection of an environment. No key can change the name or the protection. */
export async function changeEnvironment(
  change: EnvironmentWrite,
  address: Address,
  request: UpdateEnvironment,
): Promise<Environment | Problem> {
  const { tx, principal } = change;
  if (!reachesProject(principal, address.projectId)) return noSuchEnvironment;
  const found = await lockEnvironment(tx, address);
  if (isProblem(found)) return found;
  if (principal.kind === "key" && principal.key.environmentOnly) return notWithEnvironmentOnly;
  const { environment, organizationId } = found;
  const { name = environment.name, caution = environment.caution } = request;
  const protection = requestedProtection(environment, request);
  const isRenamed = name !== environment.name;
  const isProtected = !isDeepStrictEqual(protection, environment.protection);
  if (!isRenamed && caution === environment.caution && !isProtected) return environment;
  if (isRenamed && principal.kind === "key" && principal.key.session === undefined)
    return onlyOperatorRenames;
  const { bypass_reason } = request;
  const refused = isProtected
    ? checkProtecting(change, environment, protection, bypass_reason)
    : undefined;
  if (refused !== undefined) return refused;
  const context = await change.context();
  const version = environment.version + 1;
  const protectedAt = protection === null ? null : (environment.protectedAt ?? context.now);
  const changed = {
    ...{ ...environment, name, caution, protection, protectedAt },
    ...{ version, updatedAt: momentAfter(environment.updatedAt, context.now) },
  };
  if (!(await updateEnvironment(tx, changed))) return nameTaken(name);
  const action = isRenamed ? "environment_renamed" : "environment_changed";
  const values = {
    before: settingsOf(environment),
    after: { ...settingsOf(changed), ...bypassed(bypass_reason) },
  };
  recordAudit(change, [environmentAudit(action, environment, values, context)]);
  change.publish([entryToPublish(environmentEntry({ ...changed, organizationId }))]);
  if (isProtected) {
    const difference = { before: environment, after: changed, organizationId };
    change.publish([eventToPublish(protectionEvent(difference, bypass_reason, context))]);
  }
  return changed;
}

export async function removeEnvironment(
  change: Change,
  address: Address,
  bypassReason: string | undefined,
): Promise<Environment | Problem> {
  const { tx } = change;
  const found = await lockEnvironment(tx, address);
  if (isProblem(found)) return found;
  const { environment } = found;
  const refused = checkDeletion(change, [environment], bypassReason);
  if (refused !== undefined) return refused;
  const context = await change.context();
  const values = { before: settingsOf(environment), after: bypassed(bypassReason) };
  recordAudit(change, [environmentAudit("environment_deleted", environment, values, context)]);
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

const onlyOperatorRenames = createProblem(
  "AUTH_002",
  "Only the operator can change /name of an environment. A server key can change /caution.",
);

const notWithEnvironmentOnly = createProblem(
  "AUTH_002",
  "A key with environment_only cannot change an environment.",
);

function nameTaken(name: string): Problem {
  return createProblem(
    "CONFLICT_001",
    `The project already has an environment with the name ${name}.`,
  );
}
