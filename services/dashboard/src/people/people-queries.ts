import { type Api, unwrap } from "../api/client.ts";
import { AdvisedError } from "../api/problem.ts";
import type { SignedIn } from "../api/schema.d.ts";
import { useOrganizationQuery } from "../keys/organization-queries.ts";
import { organizationRoute, projectsRoute, useWrite } from "../operator/operator-queries.ts";
import { useKeySession, useSessions } from "../session/session.tsx";

export const grantsRoute = `${organizationRoute}/grants` as const;
export const invitationsRoute = `${organizationRoute}/invitations` as const;

/** The roles that the signed-in person has in an organization. */
export type OwnRoles = SignedIn["organizations"][number];

export const useGrants = () =>
  useOrganizationQuery(
    "grants",
    async (api, params, signal) => (await unwrap(api.GET(grantsRoute, { params, signal }))).grants,
  );

/** Reads the projects that the person may view. */
export const useVisibleProjects = () =>
  useOrganizationQuery(
    "projects",
    async (api, params, signal) =>
      (await unwrap(api.GET(projectsRoute, { params, signal }))).projects,
  );

/** Reads the open invitations. Only owners may. */
export const useInvitations = (options: { enabled: boolean }) =>
  useOrganizationQuery(
    "invitations",
    async (api, params, signal) =>
      (await unwrap(api.GET(invitationsRoute, { params, signal }))).invitations,
    options,
  );

/** Reads the roles that the person has now. */
export const useOwnRoles = () =>
  useOrganizationQuery("own roles", async (api, { path }, signal): Promise<OwnRoles> => {
    const { organizations } = await unwrap(api.GET("/api/v1/session", { signal }));
    const own = organizations.find(({ id }) => id === path.organizationId);
    if (own !== undefined) return own;
    throw new AdvisedError(
      "You no longer have a role in this organization.",
      "Ask an owner of the organization for a role.",
    );
  });

/** Sends a change of people or roles, then reads the page and the roles of the session again. */
export function usePeopleWrite<Input, Output>(
  send: (api: Api, path: { organizationId: string }, input: Input) => Promise<Output>,
  onDone: (output: Output) => void,
) {
  const { api, me, token } = useKeySession();
  const { refresh } = useSessions();
  return useWrite(
    (input: Input) => send(api, { organizationId: me.organization.id }, input),
    (output) => {
      // It fails without a role in the project, which the banner of the live changes says.
      void refresh(token).catch(() => undefined);
      onDone(output);
    },
  );
}
