import type { Protection, ProtectionEvent, UpdateEnvironment } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import { checkRecent, includes, missingRole } from "@halyard/people";
import type { ChangeContext } from "../access/change-context.ts";
import type { Principal } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { type Approval, approvalNeeded, isLower, protectionOf } from "../protection/protection.ts";
import type { Environment } from "./environment.ts";

/**
 * Who changes the protection of an environment, and deletes one that is protected. Signed-in admins and the operator raise
 * a protection. To lower it, or to delete the environment, needs an approved change request or a reason.
 */
export type EnvironmentWrite = Change & { approval?: Approval | undefined };

export const requestedProtection = (
  { protection }: Environment,
  { protected: requested }: UpdateEnvironment,
): Protection | null => {
  if (requested === undefined) return protection;
  return requested === null ? null : protectionOf(requested);
};

/** Checks a change of the protection. */
export function checkProtecting(
  { principal, approval, now }: EnvironmentWrite,
  environment: Environment,
  protection: Protection | null,
  bypassReason: string | undefined,
): Problem | undefined {
  if (approval !== undefined) return undefined;
  const problem = checkMayProtect(principal, environment, now);
  if (problem !== undefined) return problem;
  if (!isLower(environment.protection, protection) || bypassReason !== undefined) return undefined;
  const { id: environment_id, version: base_version } = environment;
  const proposal = { environment_id, protected: protection, base_version };
  return approvalNeeded([environment], { proposals: [{ kind: "protection", ...proposal }] });
}

/** Checks the deletion of environments. Protected ones need a reason. */
export function checkDeletion(
  { principal, now }: Change,
  environments: readonly Environment[],
  bypassReason: string | undefined,
): Problem | undefined {
  const guarded = environments.filter(({ protection }) => protection !== null);
  if (guarded.length === 0) return undefined;
  if (bypassReason === undefined)
    return approvalNeeded(guarded, {
      advice: " A deletion cannot be requested: end the protection first, or give a bypass_reason.",
    });
  for (const environment of guarded) {
    const problem = checkMayProtect(principal, environment, now);
    if (problem !== undefined) return problem;
  }
  return undefined;
}

/** No key protects or bypasses, because a key is no person. */
export function checkMayProtect(
  principal: Principal,
  { id: environmentId, projectId }: Pick<Environment, "id" | "projectId">,
  now: () => Date,
): Problem | undefined {
  if (principal.kind === "operator") return undefined;
  const { session, rights } = principal.key;
  if (session === undefined) return onlyPeople;
  const held = rights.at({ projectId, environmentId });
  if (!includes(held, "admin")) return missingRole({ role: "admin", at: "environment" }, held);
  return checkRecent(session, now().getTime());
}

const onlyPeople = createProblem(
  "AUTH_002",
  "An API key cannot change a protection. This needs a sign-in as an admin, or the operator's token.",
);

/** Returns the part of an audit entry that says why a protection was bypassed; null without a reason. */
export const bypassed = (reason: string | undefined): { bypass_reason: string } | null =>
  reason === undefined ? null : { bypass_reason: reason };

/** Returns the event of a changed protection. */
export function protectionEvent(
  { before, after, organizationId }: ProtectionChange,
  bypassReason: string | undefined,
  { actor: { id, email }, cause, newId }: ChangeContext,
): ProtectionEvent {
  return {
    id: newId(),
    event: "environment.protection_changed",
    timestamp: after.updatedAt.toISOString(),
    version: after.version,
    organization_id: organizationId,
    project_id: after.projectId,
    environment: { id: after.id, name: after.name },
    protected: after.protection,
    protected_before: before.protection,
    ...bypassed(bypassReason),
    triggered_by: { id, email },
    cause: cause === "scheduled" ? "scheduled" : "manual",
  };
}

type ProtectionChange = { before: Environment; after: Environment; organizationId: string };
