import { useQueries } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { useKeySession } from "../session/session.tsx";

/** People whose names one page looks up. Each costs a request, once. */
const maxPeople = 20;

/**
 * Returns the names of users by their ids. A server key cannot list users, so the name is that in a change of the user
 * in the audit log.
 */
export function usePeople(ids: readonly string[]): (id: string) => string {
  const { api, me } = useKeySession();
  const others = [...new Set(ids)].filter((id) => id !== me.user.id).slice(0, maxPeople);
  const emails = useQueries({
    queries: others.map((id) => ({
      queryKey: ["people", id],
      staleTime: Number.POSITIVE_INFINITY,
      queryFn: async ({ signal }: { signal: AbortSignal }) => {
        const path = { projectId: me.project.id };
        const query = { actor_id: id, limit: 1 };
        const { changes } = await unwrap(
          api.GET("/api/v1/projects/{projectId}/changes", { params: { path, query }, signal }),
        );
        return changes[0]?.actor.email ?? null;
      },
    })),
  });
  return (id) => {
    if (id === me.user.id) return "you";
    return emails[others.indexOf(id)]?.data ?? "another user";
  };
}
