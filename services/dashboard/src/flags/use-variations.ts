import { useMutation, useQueryClient } from "@tanstack/react-query";
import { type Api, unwrap } from "../api/client.ts";
import { isEditConflict } from "../api/problem.ts";
import type { UpdateFlag } from "../api/schema.d.ts";
import { type Proposal, titleOf } from "../proposals/proposal.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { useKeySession } from "../session/session.tsx";
import { useKeyQuery } from "../session/use-key-query.ts";
import { protectedAmong } from "../state/protection.ts";
import { notify } from "../ui/toasts.tsx";
import { membersOf } from "../variations/json-text.ts";
import { isSameVariations, type Variations } from "../variations/merge-variations.ts";
import { variationDifferences } from "../variations/variation-differences.ts";
import { type VariationDraft, variationsIn } from "../variations/variation-drafts.ts";
import { useFlagInPage } from "./flag-page.tsx";
import { refreshFlag } from "./flag-queries.ts";
import { ifVersion } from "./state-route.ts";

async function readVariations(api: Api, id: string, signal?: AbortSignal): Promise<Variations> {
  const params = { path: { id } };
  const text = await unwrap(
    api.GET("/api/v1/flags/{id}", { params, parseAs: "text", ...(signal && { signal }) }),
  );
  return variationsOf(text);
}

const variationsOf = (flagText: string): Variations => ({
  version: Number(membersOf(flagText).get("version")),
  stored: variationsIn(flagText),
});

/** Reads the variations of the flag of the page, with the texts of their values. */
export function useVariations() {
  const { flag } = useFlagInPage();
  return useKeyQuery(["flag", flag.key, "variations"], ({ api }, signal) =>
    readVariations(api, flag.id, signal),
  );
}

/** Proposes other variations of the flag of the page, with the texts of their values. */
function variationsProposal(
  { id, key }: { id: string; key: string },
  { text, stored }: { text: string; stored: Variations["stored"] },
): Proposal {
  const differences = variationDifferences(stored, variationsIn(`{"variations":${text}}`));
  const change = `{"kind":"flag_variations","flag_id":${JSON.stringify(id)},"variations":${text}}`;
  return {
    title: titleOf(`Values of ${key}`, differences),
    changes: [],
    changesText: `[${change}]`,
    differences,
  };
}

/** `text`: the JSON text of `drafts`. `base`: the variations that the person saw. */
type Save = { text: string; base: Variations; drafts: readonly VariationDraft[] };

/**
 * Saves the variations of the flag of the page. The version of a flag also counts changes of its states. A change that
 * was rejected only because of such a change is repeated upon the new version.
 */
function useSaveVariations(onSaved: (saved: Variations, sent: readonly VariationDraft[]) => void) {
  const { api } = useKeySession();
  const client = useQueryClient();
  const { flag } = useFlagInPage();
  const patch = (text: string, version: number) =>
    unwrap(
      api.PATCH("/api/v1/flags/{id}", {
        params: { path: { id: flag.id }, header: ifVersion(version) },
        body: {} as UpdateFlag,
        bodySerializer: () => `{"variations":${text}}`,
        parseAs: "text",
      }),
    );
  return useMutation({
    mutationFn: async ({ text, base }: Save) => {
      try {
        return variationsOf(await patch(text, base.version));
      } catch (error) {
        if (!isEditConflict(error)) throw error;
        const current = await readVariations(api, flag.id);
        if (!isSameVariations(current.stored, base.stored)) throw error;
        return variationsOf(await patch(text, current.version));
      }
    },
    onSuccess: async (saved, { drafts }) => {
      await refreshFlag(client, api, flag.key);
      onSaved(saved, drafts);
      notify({ text: `The variations of ${flag.key} are saved.` });
    },
    onError: async (error) => {
      if (isEditConflict(error)) await refreshFlag(client, api, flag.key);
    },
  });
}

type Outcomes = {
  onSaved: (saved: Variations, sent: readonly VariationDraft[]) => void;
  onProposed: () => void;
};

/** Saves the variations, or proposes them if an environment of the project is protected. */
export function useSaveOrProposal({ onSaved, onProposed }: Outcomes) {
  const { flag } = useFlagInPage();
  const { isProposed, change } = useProposing(protectedAmong(useKeySession().me.environments));
  const { mutate, isPending, error, variables } = useSaveVariations(onSaved);
  const save = (sent: Save) =>
    change({
      make: () => mutate(sent),
      proposal: () => {
        const { text, base } = sent;
        const proposal = variationsProposal(flag, { text, stored: base.stored });
        return { ...proposal, onOpened: onProposed };
      },
    });
  return { save, isProposed, isPending, error, variables };
}
