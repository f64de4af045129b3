import { useQuery, useQueryClient } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import type { ApiKey, Environment, User } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";

/** The keys of an environment, and what the signed-in person may do with them. */
export type KeyPlace = {
  api: Api;
  projectId: string;
  environment: Environment;
  /** People whom a new key can belong to. */
  users: readonly Pick<User, "id" | "email" | "name">[];
  /** The key in use. Null for the operator, who may handle every key. */
  own: ApiKey | null;
};

export const pathOf = ({ projectId, environment }: KeyPlace) => ({
  projectId,
  environmentId: environment.id,
});

/** Reads the keys of an environment, without their secrets. */
export function useKeys(place: KeyPlace) {
  const { api, environment } = place;
  return useQuery({
    queryKey: ["keys", environment.id],
    // The use of a key is not announced, nor is any change to the operator.
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const { keys } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/environments/{environmentId}/keys", {
          params: { path: pathOf(place) },
          signal,
        }),
      );
      return keys;
    },
  });
}

/** Returns a function that reads the keys again, and the changes that name them. */
export function useRefreshKeys(): () => Promise<unknown> {
  const client = useQueryClient();
  return () =>
    Promise.all([
      client.invalidateQueries({ queryKey: ["keys"] }),
      client.invalidateQueries({ queryKey: ["changes"] }),
    ]);
}

/** Changes that the emails of people are searched in. */
const maxChanges = 100;

/**
 * Reads the emails of the authors of recent changes, by their ids. A server key cannot list the users of its
 * organization, so the history is the only source of their names.
 */
export function useEmails() {
  const { api, me } = useKeySession();
  return useQuery({
    queryKey: ["changes", "emails"],
    queryFn: async ({ signal }) => {
      const { changes } = await unwrap(
        api.GET("/api/v1/projects/{projectId}/changes", {
          params: { path: { projectId: me.project.id }, query: { limit: maxChanges } },
          signal,
        }),
      );
      return new Map(changes.map(({ actor }) => [actor.id, actor.email] as const));
    },
  });
}
