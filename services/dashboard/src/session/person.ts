import { type Api, type ApiEvents, createApi, unwrap } from "../api/client.ts";
import type { paths, ServerKeyIdentity } from "../api/schema.d.ts";
import { readMethods } from "./auth-requests.ts";
import type { KeySession } from "./session.tsx";

/**
 * Sessions of signed-in people. The browser keeps the cookie, which scripts cannot read. A tab has one token for each
 * project of the person, beside its server keys. The token is the id of the project, and not secret.
 */
export type SignedIn =
  paths["/api/v1/session"]["get"]["responses"][200]["content"]["application/json"];
type Project = SignedIn["organizations"][number]["projects"][number];
export type Role = NonNullable<Project["role"]>;

const prefix = "person_";
const roles: readonly Role[] = ["viewer", "editor", "approver", "admin", "owner"];

export const isPerson = (token: string): boolean => token.startsWith(prefix);

/** Returns whether a role includes another one. */
export const includes = (held: Role | null | undefined, needed: Role): boolean =>
  held !== null && held !== undefined && roles.indexOf(held) >= roles.indexOf(needed);

/** Reads the session; undefined without one, or if the server cannot be reached. */
export async function readSignedIn(): Promise<SignedIn | undefined> {
  // Browsers would report the 401 of the session's route as an error of the page.
  if ((await readMethods())?.signed_in !== true) return undefined;
  const response = await fetch("/api/v1/session").catch(() => undefined);
  return response?.ok === true ? ((await response.json()) as SignedIn) : undefined;
}

/** Reads the session of a tab that had one. Undefined if the server cannot be reached. */
export async function readRoles(): Promise<SignedIn | "ended" | undefined> {
  const response = await fetch("/api/v1/session").catch(() => undefined);
  if (response?.status === 401) return "ended";
  return response?.ok === true ? ((await response.json()) as SignedIn) : undefined;
}

/** Returns the tokens of the projects that a signed-in person may view. */
export const tokensOf = ({ organizations }: SignedIn): string[] =>
  organizations.flatMap(({ projects }) => projects.map(({ id }) => prefix + id));

/** Opens the session of a person in a project. Throws the error of the API. */
export async function openPerson(
  token: string,
  events: ApiEvents,
  known?: SignedIn,
): Promise<KeySession> {
  const projectId = token.slice(prefix.length);
  const first = createApi({}, events);
  const path = { projectId };
  const [signedIn, { environments }] = await Promise.all([
    known ?? unwrap(first.GET("/api/v1/session")),
    unwrap(first.GET("/api/v1/projects/{projectId}/environments", { params: { path } })),
  ]);
  const organization = signedIn.organizations.find(({ projects }) =>
    projects.some(({ id }) => id === projectId),
  );
  const project = organization?.projects.find(({ id }) => id === projectId);
  if (organization === undefined || project === undefined)
    throw new Error("an environment list of a project that the session does not have");
  const own = defaultEnvironment(project);
  const headers = { "Halyard-Environment": own };
  const api: Api = createApi(headers, events);
  return {
    ...{ kind: "server_key", token, headers, api },
    me: {
      user: { id: organization.user_id, ...signedIn.person },
      organization: { id: organization.id, name: organization.name },
      project: { id: project.id, name: project.name },
      environments: environments as ServerKeyIdentity["environments"],
      key: {
        ...{ id: token, name: "Signed in", environment_id: own },
        ...{ environment_only: false, expires_at: null },
      },
      roles: {
        organization: organization.role,
        project: project.role,
        environments: new Map(project.environments.map(({ id, role }) => [id, role])),
      },
      signIn: { by: signedIn.signed_in_by, endsAt: signedIn.expires_at },
    },
  };
}

/** Returns the first environment that the person may change, or else the first one. */
function defaultEnvironment({ environments }: Project): string {
  const changeable = environments.find(({ role }) => includes(role, "editor"));
  return (changeable ?? environments[0])?.id ?? "";
}

/** Ends the person's session. Returns the address at which the provider ends its own, or the first page. */
export async function signOutPerson(): Promise<string> {
  const response = await fetch("/auth/sign-out", { method: "POST" });
  const { location = "/" } = response.ok ? ((await response.json()) as { location?: string }) : {};
  return location;
}
