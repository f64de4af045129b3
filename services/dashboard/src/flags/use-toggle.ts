import { type QueryClient, useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { useCallback, useRef } from "react";
import { unwrap } from "../api/client.ts";
import { adviceFor, draftIn, isEditConflict, isUnconfirmed } from "../api/problem.ts";
import type { Environment } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { notify } from "../ui/toasts.tsx";
import { cancelListReads, invalidateList, refreshFlag, updateInList } from "./flag-queries.ts";
import { type ListedFlag, type ListedState, stateIn } from "./flag-search.ts";
import { ifVersion, statePathOf, stateRoute } from "./state-route.ts";

export type Toggle = { flag: ListedFlag; environment: Environment; enabled: boolean };

/**
 * Returns a function that turns a flag on or off. The list shows the new state before the response. After a failure it
 * shows what the API then returns. A notice offers to undo the change.
 */
export function useToggle(): (toggle: Toggle) => void {
  const pending = useRef(new Set<string>());
  const { api } = useKeySession();
  const client = useQueryClient();
  const navigate = useNavigate();

  const show = (toggle: Toggle, state: Partial<ListedState>) => showInList(client, toggle, state);

  const openRequest = (requestId: string) =>
    void navigate({ to: "/change-requests/$requestId", params: { requestId } });

  async function undo(toggle: Toggle, version: number): Promise<void> {
    const { flag, environment } = toggle;
    try {
      await unwrap(api.POST(`${stateRoute}/rollback`, { params: stateAt(toggle, version) }));
      notify({ text: `${flag.key} is back to its state before, in ${environment.name}.` });
    } catch (error) {
      fail(error, flag.key, openRequest);
    }
    await refreshFlag(client, api, flag.key);
  }

  const { mutate } = useMutation({
    mutationFn: (toggle: Toggle) =>
      unwrap(
        api.PATCH(stateRoute, {
          params: stateAt(toggle, stateIn(toggle.flag, toggle.environment.id)?.version),
          body: { enabled: toggle.enabled },
        }),
      ),
    onMutate: async (toggle) => {
      // A read of the list that is under way would replace the new state by an older one.
      const wasReading = await cancelListReads(client);
      show(toggle, { enabled: toggle.enabled });
      return { wasReading };
    },
    onSuccess: (state, toggle) => {
      show(toggle, { enabled: state.enabled, version: state.version });
      void client.invalidateQueries({ queryKey: ["flag", toggle.flag.key] });
      notify({
        text: `${toggle.flag.key} is ${state.enabled ? "on" : "off"} in ${toggle.environment.name}.`,
        // In a protected environment, turning the flag on again needs a change request.
        ...(toggle.environment.protected === null && {
          action: { label: "Undo", onPress: () => void undo(toggle, state.version) },
        }),
      });
    },
    onError: async (error, toggle) => {
      fail(error, toggle.flag.key, openRequest);
      show(toggle, { enabled: !toggle.enabled });
      await refreshFlag(client, api, toggle.flag.key).catch(() => invalidateList(client));
    },
    onSettled: (_state, _error, toggle, context) => {
      pending.current.delete(idOf(toggle));
      if (context?.wasReading) void invalidateList(client);
    },
  });

  return useCallback(
    (toggle: Toggle) => {
      // A second press before the response would compete with the first.
      if (pending.current.has(idOf(toggle))) return;
      pending.current.add(idOf(toggle));
      mutate(toggle);
    },
    [mutate],
  );
}

/** Returns the parameters of a change that applies only to this version of the state. */
const stateAt = (toggle: Toggle, version: number | undefined) => ({
  path: statePathOf(toggle),
  header: ifVersion(version),
});

function showInList(
  client: QueryClient,
  { flag, environment }: Toggle,
  state: Partial<ListedState>,
): void {
  updateInList(client, flag.key, (listed) => ({
    ...listed,
    environments: listed.environments.map((before) =>
      before.environment_id === environment.id ? { ...before, ...state } : before,
    ),
  }));
}

const idOf = ({ flag, environment }: Toggle) => `${flag.id} ${environment.id}`;

function fail(error: unknown, flagKey: string, openRequest: (id: string) => void): void {
  const draft = draftIn(error);
  notify({
    kind: "error",
    text: failureText(error, flagKey),
    ...(draft !== undefined && {
      action: { label: "Open the draft", onPress: () => openRequest(draft) },
    }),
  });
}

function failureText(error: unknown, flagKey: string): string {
  if (isEditConflict(error))
    return `Someone else changed ${flagKey} first. The list shows its current state.`;
  const reason = error instanceof Error ? error.message : "";
  if (isUnconfirmed(error))
    return `The change of ${flagKey} is not confirmed. ${reason} The list shows its state once Halyard can be reached.`;
  return `${flagKey} was not changed. ${reason} ${adviceFor(error)}`;
}
