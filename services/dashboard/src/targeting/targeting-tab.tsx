import { useEffect, useMemo, useRef, useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import { useFlagInPage } from "../flags/flag-page.tsx";
import { useStateWarning } from "../flags/use-change-warning.ts";
import { exceptionOf, stateProposal } from "../proposals/state-proposal.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { PendingNote } from "../schedules/pending-note.tsx";
import { usePermission } from "../session/use-permission.ts";
import { useCaution } from "../state/caution.tsx";
import type { FlagState } from "../state/flag-state.ts";
import { stateDifferences } from "../state/state.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { useUnsaved } from "../ui/leave-guard.ts";
import { QueryView } from "../ui/query-view.tsx";
import { notify } from "../ui/toasts.tsx";
import { stateOf } from "./draft.ts";
import { EditorContext, FlagDefaultsContext, OperatorsContext } from "./editor-context.ts";
import { MergePanel } from "./merge-panel.tsx";
import { fieldProblemOf, problemsIn } from "./problems.ts";
import { RequirementsCard } from "./requirements-card.tsx";
import { RulesCard } from "./rules-card.tsx";
import { SaveBar } from "./save-bar.tsx";
import { ServeCard } from "./serve-card.tsx";
import { StateCard } from "./state-card.tsx";
import styles from "./targeting.module.css";
import { useFlagState, useOperators, useVariationOptions } from "./targeting-queries.ts";
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
  const { draft, isDirty, conflicts, edit } = editing;
  useUnsaved(isDirty, "draft", editing.discard);
  const main = useRef<HTMLDivElement>(null);
  // The buttons disappear when they have done their work, and the focus must not be lost with them.
  const takeFocus = () => main.current?.focus({ preventScroll: true });
  const saving = useSaving(editing, takeFocus);
  const operators = useOperators().data;
  const variations = useVariationOptions();
  const { base } = editing;
  const editor = useMemo(() => ({ variations, base, edit }), [variations, base, edit]);
  const { rollout_percentage: percentage, serve } = draft;
  const defaults = useMemo(() => ({ percentage, serve }), [percentage, serve]);
  const state = useMemo(() => stateOf(draft), [draft]);
  const decide: DraftState["decide"] = (part, choice) => {
    editing.decide(part, choice);
    takeFocus();
  };
  return (
    <EditorContext value={editor}>
      <div className={styles.columns}>
        <div className={styles.main} ref={main} tabIndex={-1}>
          {isDirty && <MergePanel editing={editing} onDecide={decide} />}
          <PendingNote />
          <StateCard draft={draft} state={state} />
          <ServeCard draft={draft} />
          <FlagDefaultsContext value={defaults}>
            <OperatorsContext value={operators}>
              <RulesCard rules={draft.rules} problems={saving.problems} />
            </OperatorsContext>
          </FlagDefaultsContext>
          <RequirementsCard draft={draft} problems={saving.problems} />
          {saving.error !== undefined && <ErrorPanel error={saving.error} />}
          {isDirty && (
            <SaveBar
              problemCount={saving.problems.size}
              isPending={saving.isPending}
              openConflicts={conflicts.length}
              whyNot={saving.reason}
              isProposed={saving.isProposed}
              onSave={() => void saving.save()}
              onDiscard={saving.discard}
            />
          )}
        </div>
        <TryPanel draft={draft} isDraft={isDirty} />
        {saving.question}
      </div>
    </EditorContext>
  );
}

type Sending = { save: () => void; onProposed: () => void };

/** Saves a draft, after a question where one is needed, or proposes it in a protected environment. */
function useSending({ base, draft, version }: DraftState, { save, onProposed }: Sending) {
  const place = useFlagInPage();
  const { flag, environment } = place;
  const warningOf = useStateWarning(environment);
  const [isAsking, setAsking] = useState(false);
  const caution = useCaution(environment);
  const { proposes, change } = useProposing(environment);
  const before = stateOf(base);
  const after = stateOf(draft);
  const exception = exceptionOf(before, after);
  return {
    ...{ isAsking, isProposed: proposes(exception), question: caution.dialog },
    async send(): Promise<void> {
      setAsking(true);
      const warning = await warningOf(flag, before, after);
      setAsking(false);
      const question = () => ({
        title: `Save in ${environment.name}?`,
        action: "Save",
        changes: stateDifferences(before, after),
        warning,
      });
      change({
        exception,
        make: () => caution.ask(question, save),
        proposal: () => {
          const proposal = stateProposal(place, { version }, { before, after });
          return { ...proposal, warning, onOpened: onProposed };
        },
      });
    },
  };
}

/** The actions on a draft, and its problem. */
function useSaving(editing: DraftState, takeFocus: () => void) {
  const { draft, version, isOutdated, restart, merge } = editing;
  const { reason } = usePermission("change_states", useFlagInPage().environment);
  const [isChecked, setChecked] = useState(false);
  const { language: locale } = navigator;
  const operators = useOperators().data;
  const saved = useSave((state, sent) => {
    setChecked(false);
    restart(state, sent);
    // If the draft changed during the request, the person is still typing: leave the focus there.
    if (draft === sent) takeFocus();
  });
  const { mutate, isPending, error, variables } = saved;
  const sending = useSending(editing, {
    save: () => mutate({ draft, version }),
    onProposed: dropProposed,
  });
  const readProblems = () => problemsIn(draft, operators, locale);
  const fromApi = fieldProblemOf(error, variables?.draft ?? draft);
  // The panel of the merge says it in place of the error.
  const isMerged = (failure: Error) => isEditConflict(failure) && editing.firstBase !== undefined;
  const isShown = fromApi !== undefined && [draft.requires, ...draft.rules].includes(fromApi.part);
  // Not during a save, because the newer version can be the one that it makes.
  useEffect(() => {
    if (isOutdated && !isPending) merge();
  });

  function discard(): void {
    saved.reset();
    setChecked(false);
    const restore = editing.discard();
    takeFocus();
    notify({
      text: "Your changes are discarded.",
      action: { label: "Undo", onPress: restore },
    });
  }

  function dropProposed(): void {
    saved.reset();
    setChecked(false);
    editing.discard();
    takeFocus();
  }

  return {
    reason,
    isProposed: sending.isProposed,
    problems: new Map([
      ...(isChecked ? readProblems() : []),
      ...(isShown ? [[fromApi.key, fromApi.text] as const] : []),
    ]),
    isPending: isPending || sending.isAsking,
    error: error === null || fromApi !== undefined || isMerged(error) ? undefined : error,
    discard,
    question: sending.question,
    async save(): Promise<void> {
      setChecked(true);
      if (readProblems().size === 0) await sending.send();
    },
  };
}
