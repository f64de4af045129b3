import { useQueryClient } from "@tanstack/react-query";
import { useCallback } from "react";
import { unwrap } from "../api/client.ts";
import type { Environment } from "../api/schema.d.ts";
import { fetchAudiences } from "../references/audience-queries.ts";
import { useKeySession } from "../session/session.tsx";
import type { State } from "../state/flag-state.ts";
import {
  type Audiences,
  audiencesIn,
  neededFor,
  readersWarning,
  unreadWarning,
} from "../state/readers.ts";
import { type ListedFlag, stateIn } from "./flag-search.ts";
import { statePathOf, stateRoute } from "./state-route.ts";

const route = "/api/v1/projects/{projectId}/environments/{environmentId}/readers";

/**
 * Returns a function that warns about a change in an environment if SDKs of its applications do not support the change.
 * It waits for the list of these SDKs, but reads the list only for a change that needs a feature.
 */
export function useReadersWarning({ id: environmentId }: Pick<Environment, "id">) {
  const session = useKeySession();
  const client = useQueryClient();
  return useCallback(
    async (before: State, after: State): Promise<string | undefined> => {
      const { api, me } = session;
      let audiences: Audiences | undefined;
      if (audiencesIn(after).length > 0) {
        audiences = await fetchAudiences(client, session).catch(() => undefined);
        if (audiences === undefined) return unreadWarning;
      }
      const needed = neededFor(before, after, audiences);
      if (needed.length === 0) return undefined;
      const params = { path: { projectId: me.project.id, environmentId } };
      const read = await client
        .fetchQuery({
          queryKey: ["readers", environmentId],
          queryFn: ({ signal }) => unwrap(api.GET(route, { params, signal })),
        })
        .catch(() => undefined);
      return readersWarning(needed, read?.readers);
    },
    [session, client, environmentId],
  );
}

/** Returns a function that warns in the same way before a flag is turned on. It reads the rules of a flag that has some. */
export function useTurnOnWarning(environment: Environment) {
  const { api } = useKeySession();
  const warningOf = useReadersWarning(environment);
  return useCallback(
    async (flag: ListedFlag): Promise<string | undefined> => {
      const listed = stateIn(flag, environment.id);
      const params = { path: statePathOf({ flag, environment }) };
      const state: State | undefined =
        listed?.rule_count === 0
          ? { ...listed, targeting_rules: [] }
          : await unwrap(api.GET(stateRoute, { params })).catch(() => undefined);
      if (state === undefined) return unreadWarning;
      return warningOf({ ...state, enabled: false }, { ...state, enabled: true });
    },
    [api, environment, warningOf],
  );
}
