import type { CreateGrant, Role } from "../api/schema.d.ts";
import { includes } from "../session/person.ts";
import type { OwnRoles } from "./people-queries.ts";

type Scope = CreateGrant["scope"];
type Asked = Pick<CreateGrant, "subject" | "role" | "scope">;

/** A place of a scope, and the reader's own role there. */
type Held = { name: string; role: Role | null };

/**
 * Returns the reason why the person may not give or withdraw a role; undefined if it is permitted. It needs admin wherever the role
 * counts. Roles of groups, and the role owner, need an owner. The API decides by the same rules.
 */
export function whyNotGive(own: OwnRoles, { subject, role, scope }: Asked): string | undefined {
  const needed: Role = role === "owner" || "group" in subject ? "owner" : "admin";
  const missing = placesOf(own, scope).find((place) => !includes(place.role, needed));
  if (missing === undefined) return undefined;
  return `This needs the role ${needed} in ${missing.name}; yours is ${missing.role ?? "none"}.`;
}

function placesOf(own: OwnRoles, scope: Scope): Held[] {
  if ("organization" in scope) return [{ name: "the whole organization", role: own.role }];
  const project = own.projects.find(({ id }) => id === scope.project);
  const role = project?.role ?? own.role;
  if (scope.environments === undefined) return [{ name: project?.name ?? "the project", role }];
  return scope.environments.map((id) => {
    const environment = project?.environments.find((each) => each.id === id);
    return {
      name: environment?.name ?? "the environment",
      role: environment === undefined ? role : environment.role,
    };
  });
}

/** A place in which the person may give roles. `isWhole` is false if only in some environments of the project. */
export type OfferedProject = OwnRoles["projects"][number] & { isWhole: boolean };

/** Returns the projects in which the person may give roles. */
export const offeredProjects = ({ projects }: OwnRoles): OfferedProject[] =>
  projects
    .map((project) => ({ ...project, isWhole: includes(project.role, "admin") }))
    .filter(
      ({ isWhole, environments }) =>
        isWhole || environments.some(({ role }) => includes(role, "admin")),
    );

/** Returns whether the person may give a role anywhere. */
export const givesRoles = (own: OwnRoles): boolean =>
  includes(own.role, "admin") || offeredProjects(own).length > 0;

/** Returns the roles that the person may give in a scope. Viewer in some environments is viewer in the project. */
export function offeredRoles(own: OwnRoles, asked: Omit<Asked, "role">): readonly Role[] {
  const isInEnvironments = "project" in asked.scope && asked.scope.environments !== undefined;
  const roles: readonly Role[] = ["viewer", "editor", "approver", "admin", "owner"];
  return roles.filter(
    (role) =>
      !(role === "viewer" && isInEnvironments) &&
      !(role === "owner" && "project" in asked.scope) &&
      whyNotGive(own, { ...asked, role }) === undefined,
  );
}
