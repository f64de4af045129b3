import { useMutation, useQueryClient } from "@tanstack/react-query";
import { unwrap } from "../api/client.ts";
import { isEditConflict } from "../api/problem.ts";
import { useKeySession } from "../session/session.tsx";
import { notify } from "../ui/toasts.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { readFlag, refreshFlag } from "./flag-queries.ts";
import {
  type FlagSettings,
  hasSameSettings,
  requestedSettings,
  settingsOfFlag,
} from "./flag-settings.ts";
import { ifVersion } from "./state-route.ts";

/** `base`: the settings that the person saw. The change is rejected if they are no longer the stored ones. */
type Save = { draft: FlagSettings; base: FlagSettings };

/**
 * Saves the settings of a flag. Its version also counts changes of its state. A change that was rejected only because
 * of such a change is repeated upon the new version.
 */
export function useSaveSettings(onSaved: (saved: FlagSettings, sent: FlagSettings) => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const { flag } = useFlagInPage();
  const patch = (body: FlagSettings, version: number) =>
    unwrap(
      api.PATCH("/api/v1/flags/{id}", {
        params: { path: { id: flag.id }, header: ifVersion(version) },
        body,
      }),
    );
  const refresh = () => refreshFlag(client, api, flag.key);
  return useMutation({
    mutationFn: async ({ draft, base }: Save) => {
      const settings = requestedSettings(draft);
      try {
        return await patch(settings, flag.version);
      } catch (error) {
        if (!isEditConflict(error)) throw error;
        const current = await readFlag(api, flag.key);
        if (current === undefined || !hasSameSettings(current, base)) throw error;
        return await patch(settings, current.version);
      }
    },
    onSuccess: async (saved, { draft }) => {
      await refresh();
      onSaved(settingsOfFlag(saved), draft);
      notify({ text: `The settings of ${flag.key} are saved.` });
    },
    onError: async (error) => {
      if (isEditConflict(error)) await refresh();
    },
  });
}
