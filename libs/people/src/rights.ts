import { type GrantedRole, type KeyScope, type Role, roles } from "@halyard/contracts";

/** A place at which a role may count. Without a project, it is the organization. */
export type Place = { projectId?: string | undefined; environmentId?: string | undefined };

/**
 * Returns the highest role that grants give at a place; undefined for none. A grant for some environments gives `viewer`
 * in the rest of its project, and nothing in the organization.
 */
export function roleAt(grants: readonly GrantedRole[], place: Place): Role | undefined {
  return highest(grants.map((grant) => roleOf(grant, place)));
}

/** Returns the highest role that grants give in a project or in any of its environments. */
export function roleWithin(grants: readonly GrantedRole[], projectId: string): Role | undefined {
  return highest(
    grants.map(({ role, project_id = projectId }) => (project_id === projectId ? role : undefined)),
  );
}

/** Returns the highest role that grants give anywhere. */
export function roleAnywhere(grants: readonly GrantedRole[]): Role | undefined {
  return highest(grants.map(({ role }) => role));
}

export function includes(held: Role | undefined, needed: Role): boolean {
  return held !== undefined && roles.indexOf(held) >= roles.indexOf(needed);
}

/** The roles of a caller, in the organization of the caller. */
export type Rights = {
  at(place: Place): Role | undefined;
  /** In a project or any of its environments. */
  within(projectId: string): Role | undefined;
  anywhere(): Role | undefined;
};

/** Returns the rights that grants give. */
export const rightsOf = (grants: readonly GrantedRole[]): Rights => ({
  at: (place) => roleAt(grants, place),
  within: (projectId) => roleWithin(grants, projectId),
  anywhere: () => roleAnywhere(grants),
});

/**
 * Returns the rights of a server key. Everywhere, they are the lesser of its scope's and its user's. A user who never
 * had a role does not bound them, as before release 0.2.
 */
export function rightsOfKey(
  scope: KeyScope,
  user: { governed: boolean; grants: readonly GrantedRole[] } | undefined,
): Rights {
  const most = mostOf[scope];
  if (user === undefined || !user.governed)
    return { at: () => most, within: () => most, anywhere: () => most };
  const own = rightsOf(user.grants);
  const lesser = (role: Role | undefined) => (includes(role, most) ? most : role);
  return {
    at: (place) => lesser(own.at(place)),
    within: (projectId) => lesser(own.within(projectId)),
    anywhere: () => lesser(own.anywhere()),
  };
}

/** The most that a server key does with each scope. Keys never change the organization. */
const mostOf: Readonly<Record<KeyScope, Role>> = {
  read: "viewer",
  propose: "viewer",
  write: "admin",
};

function roleOf(
  { role, project_id, environment_ids }: GrantedRole,
  place: Place,
): Role | undefined {
  if (project_id === undefined) return role;
  if (project_id !== place.projectId) return undefined;
  if (environment_ids === undefined) return role;
  const isThere =
    place.environmentId !== undefined && environment_ids.includes(place.environmentId);
  return isThere ? role : "viewer";
}

function highest(held: readonly (Role | undefined)[]): Role | undefined {
  return roles.findLast((role) => held.includes(role));
}
