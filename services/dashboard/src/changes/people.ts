import { useQueries } from "@tanstack/react-query";
import { type KeySession, useKeySession } from "../session/session.tsx";
import { readChanges } from "./read-changes.ts";

/** People whose names one page looks up. Each costs a request, once. */
const maxPeople = 20;

/**
 * The query for the e-mail of a user. A server key cannot list users, so it is that in a change of the user in the audit
 * log.
 */
export const personQuery = (session: KeySession, id: string) => ({
  queryKey: ["person", id],
  staleTime: Number.POSITIVE_INFINITY,
  queryFn: async ({ signal }: { signal: AbortSignal }) => {
    const { changes } = await readChanges(session, { actor_id: id, limit: 1 }, signal);
    return changes[0]?.actor.email ?? null;
  },
});

/** Returns the names of users by their ids. */
export function usePeople(ids: readonly string[]): (id: string) => string {
  const session = useKeySession();
  const own = session.me.user.id;
  const others = [...new Set(ids)].filter((id) => id !== own).slice(0, maxPeople);
  const emails = useQueries({ queries: others.map((id) => personQuery(session, id)) });
  return (id) => (id === own ? "you" : (emails[others.indexOf(id)]?.data ?? "another user"));
}
