import { useMutation, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { isEditConflict } from "../api/problem.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { putIntoList, readFlag } from "../flags/flag-queries.ts";
import { ifVersion, statePathOf, stateRoute } from "../flags/state-route.ts";
import { useKeySession } from "../session/session.tsx";
import type { FlagState } from "../state/flag-state.ts";
import { requestFor } from "../state/state.ts";
import { notify } from "../ui/toasts.tsx";
import { type Draft, stateOf } from "./draft.ts";
import { stateKey } from "./targeting-queries.ts";

type Save = { draft: Draft; version: number };

/** Saves a draft upon a version of the state. It is rejected with 412 if the version is no longer the current one. */
export function useSave(onSaved: (state: FlagState, sent: Draft) => void) {
  const { api } = useKeySession();
  const inPage = useFlagInPage();
  const client = useQueryClient();
  const { flag, environment } = inPage;
  const queryKey = stateKey(inPage);
  return useMutation({
    mutationFn: async ({ draft, version }: Save) => {
      // A read that began before the change must not replace its result.
      await client.cancelQueries({ queryKey });
      const params = { path: statePathOf(inPage), header: ifVersion(version) };
      return unwrap(api.PATCH(stateRoute, { params, body: requestFor(stateOf(draft)) }));
    },
    onSuccess: async (state, { draft }) => {
      client.setQueryData<FlagState>(queryKey, state);
      onSaved(state, draft);
      notify({ text: `${flag.key} is saved in ${environment.name}.` });
      void client.invalidateQueries({ queryKey: ["flag", flag.key] });
      putIntoList(client, flag.key, await readFlag(api, flag.key));
    },
    onError: async (error) => {
      if (isEditConflict(error)) await client.refetchQueries({ queryKey });
    },
  });
}
