import { useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import type { Audience, PreviewAudienceAnswer } from "../api/schema.d.ts";
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
  rebased,
  type StartedEdit,
  startEdit,
} from "./audience-draft.ts";
import { usePreview, useUpdateAudience } from "./use-audience-changes.ts";

/** The states that a change reaches, and the change that waits for an answer. */
export type Question = { flags: PreviewAudienceAnswer["flags"]; save: () => void };

/**
 * Keeps a draft of an audience. Without unsaved changes it follows the stored audience. What another person saves is
 * merged into the draft. A change that reaches flags is saved after a question.
 */
export function useAudienceEdit(stored: Audience) {
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

  function save(): void {
    setChecked(true);
    if (audienceProblems(draft, rules).size > 0) return;
    if (changedParts.includes("alternatives"))
      preview.mutate(matchOf(draft), {
        onSuccess: (flags) => (flags.length === 0 ? send() : setQuestion({ flags, save: send })),
      });
    else send();
  }

  const error = preview.error ?? update.error;
  return {
    draft,
    isDirty,
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
