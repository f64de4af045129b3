import type { CreateGrant, GrantedRole, Grant as GrantResource, Role } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import { includes, type Place } from "@halyard/people";

/** A role of a user, or of everybody with a value in the provider's claim of groups. */
export type Grant = {
  id: string;
  organizationId: string;
  subject: GrantSubject;
  role: Role;
  /** Null for the whole organization. */
  projectId: string | null;
  /** In ascending order. Null for the whole project. */
  environmentIds: readonly string[] | null;
  createdAt: Date;
};

type GrantSubject = { userId: string } | { group: string };

/** A grant that is not stored yet. */
export type NewGrant = Omit<Grant, "id" | "createdAt">;

/** Returns the role of the caller at a place. */
export type RoleAt = (place: Place) => Role | undefined;

/** The operator gives and withdraws every role. */
export const roleOfOperator: RoleAt = () => "owner";

/** Maximum number of grants of a user, and of all groups of an organization. Each set is one message of the broker. */
const maxGrants = 200;

/** Reads the body of a request. Ids become lowercase, because roles are compared by text. */
export function readGrant(
  organizationId: string,
  { subject, role, scope }: CreateGrant,
): NewGrant | Problem {
  const isOrganization = "organization" in scope;
  if (isOrganization && scope.organization.toLowerCase() !== organizationId)
    return createProblem("VALIDATION_001", "/scope/organization must be the one in the path");
  if (role === "owner" && !isOrganization)
    return createProblem("VALIDATION_001", "/role must not be owner in a project");
  const environments = isOrganization ? undefined : scope.environments;
  return {
    organizationId,
    subject: "group" in subject ? subject : { userId: subject.user_id.toLowerCase() },
    role,
    projectId: isOrganization ? null : scope.project.toLowerCase(),
    environmentIds: environments
      ? [...new Set(environments.map((id) => id.toLowerCase()))].toSorted()
      : null,
  };
}

/**
 * Checks that the caller may give or withdraw a role: as an admin wherever the role counts. Roles of groups, and the role
 * owner, need an owner. A caller therefore never gives more than it has.
 */
export function checkMayGive(held: RoleAt, grant: NewGrant): Problem | undefined {
  const needed = grant.role === "owner" || "group" in grant.subject ? "owner" : "admin";
  const missing = placesOf(grant).find((place) => !includes(held(place), needed));
  if (missing === undefined) return undefined;
  const own = held(missing);
  const yours = own === undefined ? "you have none there" : `yours is ${own}`;
  return createProblem(
    "AUTH_002",
    `This needs the role ${needed} wherever the grant counts; ${yours}.`,
  );
}

/** Decides a new grant beside the existing grants of its user, or of all groups. */
export function checkAddition(
  grant: NewGrant,
  { held, existing }: { held: RoleAt; existing: readonly Grant[] },
): Problem | undefined {
  const problem = checkMayGive(held, grant);
  if (problem !== undefined) return problem;
  if (existing.some((other) => isSame(other, grant)))
    return createProblem("CONFLICT_001", "The subject already has this role in this scope.");
  if (existing.length < maxGrants) return undefined;
  return createProblem(
    "CONFLICT_001",
    `A user, and all groups together, have at most ${maxGrants} grants: withdraw some first.`,
  );
}

/** A direct grant of the role owner to a user with a person. */
export type OwnerGrant = { grantId: string; userId: string };

/**
 * Decides the withdrawal of a grant. The last owner is checked before the rights of the caller, so that two owners who
 * withdraw each other's role at the same time learn that one of them remains.
 */
export function checkWithdrawal(
  grant: Grant,
  { held, owners }: { held: RoleAt; owners: readonly OwnerGrant[] },
): Problem | undefined {
  return (
    checkKeepsOwner(owners, ({ grantId }) => grantId === grant.id) ?? checkMayGive(held, grant)
  );
}

/** Rejects a change that takes the role from all owners who can sign in. */
export function checkKeepsOwner(
  owners: readonly OwnerGrant[],
  isLost: (owner: OwnerGrant) => boolean,
): Problem | undefined {
  if (owners.length === 0 || !owners.every(isLost)) return undefined;
  return createProblem(
    "CONFLICT_001",
    "This is the last owner of the organization who can sign in. Make another person an owner first.",
  );
}

/** Returns a grant as entries and the rules of roles have it. */
export function grantedRole({
  role,
  projectId,
  environmentIds,
}: Pick<Grant, "role" | "projectId" | "environmentIds">): GrantedRole {
  return {
    role,
    ...(projectId !== null && { project_id: projectId }),
    ...(environmentIds !== null && { environment_ids: [...environmentIds] }),
  };
}

/** Returns a grant as the API represents it. */
export function grantResource(grant: Grant): GrantResource {
  return { id: grant.id, ...grantContent(grant), created_at: grant.createdAt.toISOString() };
}

/** Returns the members of a grant that a request contains, also for the audit log. */
export function grantContent(grant: NewGrant): Pick<GrantResource, "subject" | "role" | "scope"> {
  const { subject, role, organizationId, projectId, environmentIds } = grant;
  return {
    subject: "group" in subject ? { group: subject.group } : { user_id: subject.userId },
    role,
    scope:
      projectId === null
        ? { organization: organizationId }
        : {
            project: projectId,
            ...(environmentIds !== null && { environments: [...environmentIds] }),
          },
  };
}

export const noSuchGrant = createProblem(
  "NOT_FOUND_001",
  "There is no such grant in this organization.",
);

/** Returns the places where the role of a grant counts. */
function placesOf({ projectId, environmentIds }: NewGrant): Place[] {
  if (projectId === null) return [{}];
  return environmentIds?.map((environmentId) => ({ projectId, environmentId })) ?? [{ projectId }];
}

/** Returns whether two grants give the same role to the same subject in the same scope. */
export function isSame(one: NewGrant, other: NewGrant): boolean {
  return JSON.stringify(grantContent(one)) === JSON.stringify(grantContent(other));
}
