import { type UseQueryOptions, useQuery, useQueryClient } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import type { ApiKey, Environment, User } from "../api/schema.d.ts";
import { readChanges } from "../changes/read-changes.ts";
import { useEnvironment } from "../session/environment.tsx";
import { includes } from "../session/person.ts";
import { type Me, useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { useMembers } from "./organization-queries.ts";

/** The keys of an environment, and what the signed-in person may do with them. */
export type KeyPlace = {
  api: Api;
  projectId: string;
  environment: Environment;
  /** Users whom a new key can belong to. For a key or a person, that user is the first. */
  users: readonly Pick<User, "id" | "email" | "name">[];
  /** The caller revokes keys of every user. */
  mayRevokeAll: boolean;
  /** The key in use. Null for the operator, who may handle every key. */
  own: Me["key"] | null;
};

/** Returns the chosen environment, for the session. Admins also issue keys for service users. */
export function useOwnPlace(): KeyPlace {
  const { environment } = useEnvironment();
  const { api, me } = useKeySession();
  const isAdmin = includes(me.roles?.project, "admin");
  const { data: members = [] } = useMembers({ enabled: isAdmin });
  const services = isAdmin ? members.filter(({ kind }) => kind === "service") : [];
  return {
    ...{ api, projectId: me.project.id, environment, own: me.key },
    ...{ users: [me.user, ...services], mayRevokeAll: isAdmin },
  };
}

/** The route of the keys of an environment, and that of one key. */
export const keysRoute = "/api/v1/projects/{projectId}/environments/{environmentId}/keys";
export const keyRoute = `${keysRoute}/{keyId}` as const;

export const pathOf = ({ projectId, environment }: KeyPlace) => ({
  projectId,
  environmentId: environment.id,
});

/** Reads the keys of an environment, without their secrets: all live ones and those that ended in the last 30 days. */
export function useKeys(
  place: KeyPlace,
  options: Pick<UseQueryOptions<ApiKey[]>, "refetchInterval"> = {},
) {
  const { api, environment } = place;
  return useQuery({
    ...options,
    queryKey: ["keys", environment.id],
    // The use of a key is not announced, nor is any change to the operator.
    staleTime: 0,
    queryFn: async ({ signal }) => {
      const params = { path: pathOf(place) };
      return (await unwrap(api.GET(keysRoute, { params, signal }))).keys;
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

/** Returns the emails of users by their ids. */
export function useEmails(): ReadonlyMap<string, string> {
  const { data: members = [] } = useMembers();
  const { data: authors = [] } = useAuthors();
  return new Map([...authors, ...members.map(({ id, email }) => [id, email] as const)]);
}

/**
 * Reads the emails of the authors of recent changes, by their ids. A server key cannot list the users of its
 * organization, so the history is the only source of their names.
 */
const useAuthors = () =>
  useKeyQuery(["changes", "emails"], async (session, signal) => {
    const { changes } = await readChanges(session, { limit: maxChanges }, signal);
    return new Map(changes.map(({ actor }) => [actor.id, actor.email] as const));
  });
