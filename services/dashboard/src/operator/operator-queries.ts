import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import { useOperatorSession } from "../session/session.tsx";

/** Reads when a page is opened and when its window gets the focus, because the operator has no stream of changes. */
function useFresh<Data>(
  queryKey: readonly string[],
  read: (api: Api, signal: AbortSignal) => Promise<Data>,
) {
  const { api } = useOperatorSession();
  return useQuery({ queryKey, queryFn: ({ signal }) => read(api, signal), staleTime: 0 });
}

export const organizationRoute = "/api/v1/organizations/{organizationId}";
export const usersRoute = `${organizationRoute}/users` as const;
export const projectsRoute = `${organizationRoute}/projects` as const;
export const projectRoute = `${projectsRoute}/{projectId}` as const;

export const useOrganizations = () =>
  useFresh(
    ["organizations"],
    async (api, signal) =>
      (await unwrap(api.GET("/api/v1/organizations", { signal }))).organizations,
  );

/** Reads the plans of the installation, the smallest first. */
export const usePlans = () =>
  useFresh(
    ["plans"],
    async (api, signal) => (await unwrap(api.GET("/api/v1/plans", { signal }))).plans,
  );

export function useOrganization(organizationId: string) {
  const params = { path: { organizationId } };
  return useFresh(["organization", organizationId], (api, signal) =>
    unwrap(api.GET(organizationRoute, { params, signal })),
  );
}

export function useUsers(organizationId: string) {
  const params = { path: { organizationId } };
  return useFresh(
    ["organization", organizationId, "users"],
    async (api, signal) => (await unwrap(api.GET(usersRoute, { params, signal }))).users,
  );
}

export function useProjects(organizationId: string) {
  const params = { path: { organizationId } };
  return useFresh(
    ["organization", organizationId, "projects"],
    async (api, signal) => (await unwrap(api.GET(projectsRoute, { params, signal }))).projects,
  );
}

type ProjectPath = { organizationId: string; projectId: string };

export const useProject = (path: ProjectPath) =>
  useFresh(["organization", path.organizationId, "projects", path.projectId], (api, signal) =>
    unwrap(api.GET(projectRoute, { params: { path }, signal })),
  );

/** Number of changes that the page of a project shows. */
const newestChanges = 10;

export function useNewestChanges(projectId: string) {
  const params = { path: { projectId }, query: { limit: newestChanges } };
  const route = "/api/v1/projects/{projectId}/changes";
  return useFresh(
    ["changes", projectId],
    async (api, signal) => (await unwrap(api.GET(route, { params, signal }))).changes,
  );
}

/** The part of a request that dialogs show. */
type Write<Input> = { mutate: (input: Input) => void; isPending: boolean; error: unknown };

/**
 * Sends a change, reads the data of the page again, then calls `onDone`. `leave` opens another page first, if the change
 * deletes the subject of this page.
 */
export function useWrite<Input, Output>(
  send: (input: Input) => Promise<Output>,
  onDone: (output: Output) => void,
  leave?: () => Promise<void>,
): Write<Input> {
  const client = useQueryClient();
  return useMutation({
    mutationFn: send,
    onSuccess: async (output) => {
      await leave?.();
      await client.invalidateQueries();
      onDone(output);
    },
  });
}

/** Explains the rejection of a change that takes the role from the last owner. */
export async function keepingOwner<Answer>(answer: Promise<Answer>): Promise<Answer> {
  try {
    return await answer;
  } catch (error) {
    if (!(error instanceof ApiProblem) || error.status !== 409) throw error;
    throw new AdvisedError(
      "This is the last owner of the organization who can sign in.",
      "Give another person the role owner in the whole organization. After that person has signed in once, try again.",
    );
  }
}
