import { useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import type { Environment } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import type { State } from "../state/flag-state.ts";
import { addedNeeds, readersWarning } from "../state/readers.ts";

const route = "/api/v1/projects/{projectId}/environments/{environmentId}/readers";

/**
 * Returns a function that warns about a change in an environment if SDKs of its applications do not support the change.
 * It waits for the list of these SDKs, but reads the list only for a change that needs another feature.
 */
export function useReadersWarning({ id: environmentId }: Pick<Environment, "id">) {
  const { api, me } = useKeySession();
  const client = useQueryClient();
  const path = { projectId: me.project.id, environmentId };
  const readReaders = () =>
    client.fetchQuery({
      queryKey: ["readers", environmentId],
      queryFn: ({ signal }) => unwrap(api.GET(route, { params: { path }, signal })),
    });
  return async (before: State, after: State): Promise<string | undefined> => {
    if (addedNeeds(before, after).length === 0) return undefined;
    const read = await readReaders().catch(() => undefined);
    return readersWarning(before, after, read?.readers);
  };
}
