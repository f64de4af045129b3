import { useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { Audience, Environment, PreviewAudienceAnswer } from "../api/schema.d.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { useOperators } from "../targeting/targeting-queries.ts";
import { useUnsaved } from "../ui/leave-guard.ts";
import { notify } from "../ui/toasts.tsx";
import {
  type AudienceDraft,
  type AudiencePart,
  audienceProblems,
  changedSettings,
  decided,
  differingParts,
  matchOf,
  matchProblemOf,
  reachText,
  rebased,
  type StartedEdit,
  startEdit,
} from "./audience-draft.ts";
import { matchProposal } from "./audience-proposal.ts";
import { usePreview, useUpdateAudience } from "./use-audience-changes.ts";

/** The states that a change reaches, and the change that waits for an answer. */
export type Question = { flags: PreviewAudienceAnswer["flags"]; save: () => void };

/**
 * Keeps a draft of an audience. Without unsaved changes it follows the stored audience. What another person saves is
 * merged into the draft. A change that reaches flags is saved after a question. Alternatives that reach a protected
 * environment are proposed; the other settings remain in the draft.
 */
export function useAudienceEdit(stored: Audience, reached: Environment | undefined) {
  const [started, setStarted] = useState<StartedEdit>();
  const [question, setQuestion] = useState<Question>();
  const [isChecked, setChecked] = useState(false);
  const operators = useOperators().data;
  const edit = started === undefined ? startEdit(stored) : rebased(started, stored);
  const { draft, base, version, conflicts } = edit;
  const changedParts = differingParts(base, draft);
  const isDirty = changedParts.length > 0;
  useUnsaved(isDirty);
  const preview = usePreview(stored.key);
  const update = useUpdateAudience(stored.key, () => {
    setStarted(undefined);
    setChecked(false);
    notify({ text: `${stored.key} is saved.` });
  });
  const rules = { operators, locale: navigator.language };
  const fromApi = matchProblemOf(preview.error ?? update.error, draft);

  function change(next: (draft: AudienceDraft) => AudienceDraft): void {
    preview.reset();
    update.reset();
    setStarted((before) => {
      const current = before === undefined ? startEdit(stored) : rebased(before, stored);
      return { ...current, draft: next(current.draft) };
    });
  }

  const send = () => update.mutate({ version, body: changedSettings(base, draft) });
  const sending = useSending(edit, {
    ...{ audienceKey: stored.key, reached, send, ask: setQuestion },
    onProposed() {
      setChecked(false);
      change((before) => ({ ...before, alternatives: base.alternatives }));
    },
  });

  function save(): void {
    setChecked(true);
    if (audienceProblems(draft, rules).size > 0) return;
    if (changedParts.includes("alternatives"))
      preview.mutate(matchOf(draft), { onSuccess: sending.send });
    else send();
  }

  const error = preview.error ?? update.error;
  return {
    draft,
    isDirty,
    isProposed: sending.isProposed && changedParts.includes("alternatives"),
    conflicts,
    change,
    save,
    base,
    question,
    isMerged: started !== undefined && isDirty && started.version < stored.version,
    closeQuestion: () => setQuestion(undefined),
    decide: (part: AudiencePart, choice: "mine" | "theirs") =>
      setStarted(decided(edit, part, choice)),
    discard: () => {
      setStarted(undefined);
      setChecked(false);
      preview.reset();
      update.reset();
    },
    isPending: preview.isPending || update.isPending,
    problems: new Map([...(isChecked ? audienceProblems(draft, rules) : []), ...fromApi]),
    error: error === null || fromApi.size > 0 || isEditConflict(error) ? undefined : error,
  };
}

type Sending = {
  audienceKey: string;
  reached: Environment | undefined;
  send: () => void;
  ask: (question: Question) => void;
  onProposed: () => void;
};

/** Sends changed alternatives that reach `flags`: at once, after a question, or as a proposal. */
function useSending({ draft, base, version }: StartedEdit, sending: Sending) {
  const { audienceKey: key, reached, send, ask, onProposed } = sending;
  const { isProposed, change } = useProposing(reached);
  return {
    isProposed,
    send: (flags: Question["flags"]) =>
      change({
        make: () => (flags.length === 0 ? send() : ask({ flags, save: send })),
        proposal: () => ({
          ...matchProposal({ key, version }, matchOf(base), matchOf(draft)),
          warning: `This touches ${reachText(flags)}.`,
          onOpened: onProposed,
        }),
      }),
  };
}
