import { type FormEvent, useState } from "react";
import { ApiProblem, fieldMessageOf, isEditConflict } from "../api/problem.ts";
import type { ValueType } from "../api/schema.d.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { protectedAmong } from "../state/protection.ts";
import { capitalized } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { useUnsaved } from "../ui/leave-guard.ts";
import { Card, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Table } from "../ui/table.tsx";
import { prettyJson } from "../variations/json-text.ts";
import { MergePanel } from "../variations/merge-panel.tsx";
import {
  decided,
  type EditedVariations,
  mergedWith,
  openConflicts,
  startOf,
  type Variations,
} from "../variations/merge-variations.ts";
import {
  draftsOf,
  problemKey,
  type StoredVariation,
  type TypedValueType,
  type VariationDraft,
  type VariationProblems,
  variationProblems,
  variationsText,
} from "../variations/variation-drafts.ts";
import styles from "../variations/variations.module.css";
import { VariationsEditor } from "../variations/variations-editor.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { useSaveOrProposal, useVariations } from "./use-variations.ts";

/** The variations of a typed flag, which all environments share. */
export function VariationsTab() {
  const { flag } = useFlagInPage();
  const query = useVariations();
  const reached = protectedAmong(useKeySession().me.environments);
  const { reason } = usePermission("change_project", reached);
  const { value_type: type } = flag;
  if (!isTyped(type))
    return <Warning>This flag is on or off. Its variations are fixed: on and off.</Warning>;
  return (
    <Card title="Values">
      <QueryView query={query} label="Loading the variations">
        {(variations) =>
          reason === undefined ? (
            <VariationsForm key={flag.id} type={type} current={variations} />
          ) : (
            <VariationsTable variations={variations.stored} reason={reason} />
          )
        }
      </QueryView>
    </Card>
  );
}

const isTyped = (type: ValueType): type is TypedValueType => type !== "boolean";

type VariationsTableProps = { variations: readonly StoredVariation[]; reason: string };

/** The variations for a session that cannot change them. */
function VariationsTable({ variations, reason }: VariationsTableProps) {
  return (
    <div className={styles.form}>
      <p className={styles.note}>{reason}</p>
      <Table
        label="Variations"
        rows={variations.map((variation) => ({ id: variation.key, ...variation }))}
        columns={[
          { id: "key", header: "Key", cell: ({ key }) => <code>{key}</code> },
          {
            id: "value",
            header: "Value",
            cell: ({ json }) => <pre className={styles.valueText}>{prettyJson(json)}</pre>,
          },
          { id: "name", header: "Name", cell: ({ name }) => name },
        ]}
      />
    </div>
  );
}

type VariationsFormProps = { type: TypedValueType; current: Variations };

/**
 * Edits a draft of the variations. Without unsaved changes, the fields follow the stored variations. With unsaved
 * changes, the stored variations are merged into the draft.
 */
function VariationsForm({ type, current }: VariationsFormProps) {
  const { language: locale } = navigator;
  const [started, setStarted] = useState<EditedVariations>();
  const [isChecked, setChecked] = useState(false);
  const reset = () => {
    setStarted(undefined);
    setChecked(false);
  };
  const onSaved = (saved: Variations, sent: readonly VariationDraft[]) => {
    setChecked(false);
    // Edits made during the request remain unsaved changes.
    setStarted((before) =>
      before === undefined || before.drafts === sent
        ? undefined
        : { ...startOf(type, saved), drafts: before.drafts },
    );
  };
  const saving = useSaveOrProposal({ onSaved, onProposed: reset });
  const { isProposed, isPending, error, variables } = saving;
  // Not during a save, because the newer version can be the one that it makes.
  const merged = started && !isPending ? mergedWith(type, started, current) : started;
  const edited = merged ?? startOf(type, current);
  const { drafts, base } = edited;
  const problems = variationProblems(type, drafts, locale);
  const text = problems.size > 0 ? undefined : variationsText(type, drafts, locale);
  const isDirty =
    started !== undefined && text !== variationsText(type, draftsOf(type, base.stored), locale);
  useUnsaved(isDirty);
  const hasConflicts = isDirty && openConflicts(type, edited).length > 0;
  const isMerged = isEditConflict(error) && edited.firstBase !== undefined;
  const fromApi = variables?.text === text ? problemsOf(error, drafts) : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (hasConflicts) return;
    setChecked(true);
    setStarted(edited);
    if (text !== undefined) saving.save({ text, base, drafts });
  };
  return (
    <form onSubmit={submit} className={styles.form}>
      <p className={styles.note}>
        All environments share the variations. A new value reaches applications immediately,
        wherever the variation is served. What is served is set on the tab Targeting.
      </p>
      {isDirty && (
        <MergePanel
          type={type}
          edited={edited}
          onDecide={(conflict, choice) => setStarted(decided(edited, conflict, choice))}
        />
      )}
      <VariationsEditor
        type={type}
        drafts={drafts}
        problems={fromApi ?? problems}
        isChecked={isChecked}
        onChange={(changed) =>
          setStarted({ ...(isDirty ? edited : startOf(type, current)), drafts: changed })
        }
      />
      {error !== null && fromApi === undefined && !isMerged && <SaveError error={error} />}
      <SaveBar
        {...{ isDirty, isPending, hasConflicts, isProposed }}
        hasProblems={isChecked && problems.size > 0}
        onDiscard={reset}
      />
    </form>
  );
}

type SaveBarProps = {
  isDirty: boolean;
  isPending: boolean;
  /** The person has not chosen yet in a conflict. Until then, nothing can be saved. */
  hasConflicts: boolean;
  hasProblems: boolean;
  /** The change is requested in place of saved. */
  isProposed: boolean;
  onDiscard: () => void;
};

function SaveBar(props: SaveBarProps) {
  const { isDirty, isPending, hasConflicts, hasProblems, isProposed, onDiscard } = props;
  const text = hasProblems ? "Not saved: correct the marked fields" : "Unsaved changes";
  return (
    <div className={styles.buttons}>
      {isDirty && (
        <span role="status" className={styles.unsaved}>
          {hasConflicts ? "Unsaved changes: choose in each conflict above" : text}
        </span>
      )}
      <Button onPress={onDiscard} isDisabled={!isDirty || isPending}>
        Discard
      </Button>
      <Button
        type="submit"
        variant="primary"
        isPending={isPending}
        isDisabled={!isDirty || hasConflicts}
      >
        {isProposed ? "Request the change" : "Save variations"}
      </Button>
    </div>
  );
}

/** Returns the message of the API at the field that it names. */
function problemsOf(
  error: unknown,
  drafts: readonly VariationDraft[],
): VariationProblems | undefined {
  const { path: [parent, index, field] = [], text = "" } = fieldMessageOf(error) ?? {};
  const draft = drafts[Number(index)];
  if (parent !== "variations" || draft === undefined) return undefined;
  const shown = field === "key" || field === "name" ? field : "value";
  return new Map([[problemKey(draft.uid, shown), `${capitalized(text)}.`]]);
}

/** Explains an error. The API rejects the removal of a variation that an environment uses. */
function SaveError({ error }: { error: Error }) {
  const isUsed = error instanceof ApiProblem && error.code === "CONFLICT_001";
  if (!isUsed) return <ErrorPanel error={error} />;
  return <Warning>Not saved. {capitalized(error.message.replace(/^\//, ""))}</Warning>;
}
