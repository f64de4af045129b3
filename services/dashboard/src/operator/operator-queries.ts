import { useMutation, useQuery, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useOperatorSession } from "../session/session.tsx";

/**
 * Reads when a page is opened and when its window gets the focus, because the operator has no stream of changes.
 */
function useFresh<Data>(options: {
  queryKey: readonly string[];
  queryFn: (context: { signal: AbortSignal }) => Promise<Data>;
}) {
  return useQuery({ ...options, staleTime: 0 });
}

export function useOrganizations() {
  const { api } = useOperatorSession();
  return useFresh({
    queryKey: ["organizations"],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/v1/organizations", { signal }))).organizations,
  });
}

export function useOrganization(organizationId: string) {
  const { api } = useOperatorSession();
  const params = { path: { organizationId } };
  return useFresh({
    queryKey: ["organization", organizationId],
    queryFn: ({ signal }) =>
      unwrap(api.GET("/api/v1/organizations/{organizationId}", { params, signal })),
  });
}

export function useUsers(organizationId: string) {
  const { api } = useOperatorSession();
  const params = { path: { organizationId } };
  return useFresh({
    queryKey: ["organization", organizationId, "users"],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/v1/organizations/{organizationId}/users", { params, signal })))
        .users,
  });
}

export function useProjects(organizationId: string) {
  const { api } = useOperatorSession();
  const params = { path: { organizationId } };
  return useFresh({
    queryKey: ["organization", organizationId, "projects"],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/v1/organizations/{organizationId}/projects", { params, signal })))
        .projects,
  });
}

export type ProjectPath = { organizationId: string; projectId: string };

export function useProject(path: ProjectPath) {
  const { api } = useOperatorSession();
  const route = "/api/v1/organizations/{organizationId}/projects/{projectId}";
  return useFresh({
    queryKey: ["organization", path.organizationId, "projects", path.projectId],
    queryFn: ({ signal }) => unwrap(api.GET(route, { params: { path }, signal })),
  });
}

/** Number of changes that the page of a project shows. */
const newestChanges = 10;

export function useNewestChanges(projectId: string) {
  const { api } = useOperatorSession();
  const params = { path: { projectId }, query: { limit: newestChanges } };
  return useFresh({
    queryKey: ["changes", projectId],
    queryFn: async ({ signal }) =>
      (await unwrap(api.GET("/api/v1/projects/{projectId}/changes", { params, signal }))).changes,
  });
}

/** The part of a request that dialogs show. */
type Write<Input> = {
  mutate: (input: Input) => void;
  isPending: boolean;
  error: unknown;
};

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
