import { useRef, useState } from "react";
import { useLocale } from "react-aria-components";
import { isEditConflict } from "../api/problem.ts";
import type { FlagState } from "../api/schema.d.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { PendingNote } from "../schedules/pending-note.tsx";
import { useCaution } from "../state/caution.tsx";
import { stateDifferences } from "../state/state.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { useUnsaved } from "../ui/leave-guard.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { notify } from "../ui/toasts.tsx";
import { ConflictPanel } from "./conflict-panel.tsx";
import { type Draft, stateOf } from "./draft.ts";
import { EditorContext } from "./editor-context.ts";
import { fieldProblemOf, problemsIn } from "./problems.ts";
import { RulesCard } from "./rules-card.tsx";
import { SaveBar } from "./save-bar.tsx";
import { StateCard } from "./state-card.tsx";
import styles from "./targeting.module.css";
import { useFlagState, useOperators } from "./targeting-queries.ts";
import { TryPanel } from "./try-panel.tsx";
import { type DraftState, useDraft } from "./use-draft.ts";
import { useSave } from "./use-save.ts";

/** The targeting of the flag in the environment of the page: the switch, the percentage and the rules. */
export function TargetingTab() {
  const { environment } = useFlagInPage();
  const state = useFlagState();
  return (
    <QueryView query={state} label="Loading the rules">
      {(stored) => <TargetingEditor key={environment.id} stored={stored} />}
    </QueryView>
  );
}

function TargetingEditor({ stored }: { stored: FlagState }) {
  const editing = useDraft(stored);
  const { draft, isDirty, edit } = editing;
  useUnsaved(isDirty);
  const main = useRef<HTMLDivElement>(null);
  // The buttons disappear when they have done their work, and the focus must not be lost with them.
  const saving = useSaving(editing, () => main.current?.focus({ preventScroll: true }));
  const operators = useOperators().data;
  return (
    <EditorContext value={{ operators, problems: saving.problems, edit }}>
      <div className={styles.columns}>
        <div className={styles.main} ref={main} tabIndex={-1}>
          {saving.isConflict && (
            <ConflictPanel
              theirs={stored}
              mine={stateOf(draft)}
              isPending={saving.isPending}
              onKeep={() => saving.save(stored)}
              onTake={saving.discard}
            />
          )}
          <PendingNote />
          <StateCard draft={draft} />
          <RulesCard draft={draft} />
          {saving.error !== undefined && <ErrorPanel error={saving.error} />}
          {isDirty && !saving.isConflict && (
            <SaveBar
              isPending={saving.isPending}
              onSave={() => saving.save(editing.base)}
              onDiscard={saving.discard}
            />
          )}
        </div>
        <TryPanel state={stateOf(draft)} isDraft={isDirty} />
        {saving.question}
      </div>
    </EditorContext>
  );
}

/** The actions on a draft, and its problem. */
function useSaving(editing: DraftState, takeFocus: () => void) {
  const { draft, isOutdated, restart, restore } = editing;
  const { environment } = useFlagInPage();
  const caution = useCaution(environment);
  const [isChecked, setChecked] = useState(false);
  const { locale } = useLocale();
  const operators = useOperators().data;
  const saved = useSave((state, sent) => {
    setChecked(false);
    restart(state, sent);
    // If the draft changed during the request, the person is still typing: leave the focus there.
    if (draft === sent) takeFocus();
  });
  const { mutate, isPending, error, variables } = saved;
  const own = problemsIn(draft, operators, locale);
  const fromApi = fieldProblemOf(error, variables?.draft ?? draft);
  const isShown = fromApi !== undefined && draft.rules.includes(fromApi.rule);
  const isConflict = isOutdated && !isPending;

  function discard(): void {
    const discarded: Draft = draft;
    saved.reset();
    setChecked(false);
    editing.discard();
    takeFocus();
    notify({
      text: "Your changes are discarded.",
      action: { label: "Undo", onPress: () => restore(discarded) },
    });
  }

  return {
    problems: new Map([
      ...(isChecked ? own : []),
      ...(isShown ? [[fromApi.key, fromApi.text] as const] : []),
    ]),
    isPending,
    isConflict,
    error:
      error === null || fromApi !== undefined || (isEditConflict(error) && isConflict)
        ? undefined
        : error,
    discard,
    question: caution.dialog,
    save(upon: FlagState): void {
      setChecked(true);
      if (own.size > 0) return;
      const question = () => ({
        title: `Save in ${environment.name}?`,
        action: "Save",
        changes: stateDifferences(upon, stateOf(draft)),
      });
      caution.ask(question, () => mutate({ draft, version: upon.version }));
    },
  };
}
