import type { Grant, Role } from "../api/schema.d.ts";
import { joined } from "../state/words.ts";

type Scope = Grant["scope"];
type Named = { id: string; name: string };

/** The projects that the reader may view, with their environments. */
export type Projects = readonly (Named & { environments: readonly Named[] })[];

/** Describes the permissions of a grant: "May change flags in development and staging of Web, and view production". */
export function grantSentence({ role, scope }: Pick<Grant, "role" | "scope">, projects: Projects) {
  const may = permissionText(role, scope);
  const where = scopeText(scope, projects);
  if (!("project" in scope) || scope.environments === undefined) return `May ${may} ${where}`;
  if (role === "viewer") return `May view ${projectText(scope.project, projects)}`;
  return `May ${may} ${where}, and view ${restText(scope, projects)}`;
}

function permissionText(role: Role, scope: Scope): string {
  switch (role) {
    case "viewer":
      return "view";
    case "editor":
      return "change flags in";
    case "approver":
      return "change flags and approve change requests in";
    case "admin":
      return `change flags and manage ${adminNouns(scope)} in`;
    case "owner":
      return "do everything, such as managing people and projects, in";
  }
}

/** Lists the resources that an admin manages. Environments and webhooks belong to whole projects, and service users to the organization. */
function adminNouns(scope: Scope): string {
  if (!("project" in scope)) return "environments, webhooks, service users and roles";
  return scope.environments === undefined ? "environments, webhooks and roles" : "roles";
}

/** Names a scope: "the organization", "Web", or "development and staging of Web". */
export function scopeText(scope: Scope, projects: Projects): string {
  if (!("project" in scope)) return "the organization";
  const project = projectText(scope.project, projects);
  const { environments } = scope;
  if (environments === undefined) return project;
  const known = environmentsOf(scope.project, projects);
  const names = known.filter(({ id }) => environments.includes(id)).map(({ name }) => name);
  const unknown = environments.length - names.length;
  return `${joined([...names, ...unknownText(unknown, known.length > 0)], "and")} of ${project}`;
}

/** Projects outside the reader's roles have no names. Deleted environments of a visible project have none either. */
function unknownText(count: number, isProjectVisible: boolean): string[] {
  if (count === 0) return [];
  const kind = isProjectVisible ? "deleted " : "";
  return [count === 1 ? `one ${kind}environment` : `${count} ${kind}environments`];
}

const projectText = (id: string, projects: Projects): string =>
  projects.find((project) => project.id === id)?.name ?? `a project that you cannot view (${id})`;

const environmentsOf = (id: string, projects: Projects): readonly Named[] =>
  projects.find((project) => project.id === id)?.environments ?? [];

/** Environments that a sentence names. */
const maxNames = 3;

/** Names the environments where a role in others includes only viewer. */
function restText(scope: { project: string; environments?: string[] }, projects: Projects): string {
  const rest = environmentsOf(scope.project, projects).filter(
    ({ id }) => scope.environments?.includes(id) !== true,
  );
  if (rest.length === 0) return "the rest of the project";
  if (rest.length > maxNames) return `the other ${rest.length} environments`;
  return joined(
    rest.map(({ name }) => name),
    "and",
  );
}
