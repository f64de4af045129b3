import { useQuery } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import { useKeySession } from "../session/session.tsx";

type PathOfOrganization = { path: { organizationId: string } };

/**
 * Reads data of the organization of a signed-in person, when a page is opened and when its window gets the focus. The
 * stream of changes announces users, but neither roles nor invitations. Keys may not read it.
 */
export function useOrganizationQuery<Data>(
  name: string,
  read: (api: Api, params: PathOfOrganization, signal: AbortSignal) => Promise<Data>,
  { enabled = true }: { enabled?: boolean } = {},
) {
  const { api, me } = useKeySession();
  const params = { path: { organizationId: me.organization.id } };
  return useQuery({
    queryKey: ["organization", me.organization.id, name],
    queryFn: ({ signal }) => read(api, params, signal),
    staleTime: 0,
    enabled: enabled && me.roles !== undefined,
  });
}

/** Reads the users of the organization. */
export const useMembers = (options?: { enabled?: boolean }) =>
  useOrganizationQuery(
    "users",
    async (api, params, signal) => {
      const route = "/api/v1/organizations/{organizationId}/users";
      return (await unwrap(api.GET(route, { params, signal }))).users;
    },
    options,
  );
