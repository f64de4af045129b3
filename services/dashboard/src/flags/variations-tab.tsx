import { type FormEvent, useState } from "react";
import { ApiProblem, fieldMessageOf, isEditConflict } from "../api/problem.ts";
import type { ValueType } from "../api/schema.d.ts";
import { permissionsOf } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { capitalized } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { useUnsaved } from "../ui/leave-guard.ts";
import { Card, Warning } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { Table } from "../ui/table.tsx";
import { prettyJson } from "../variations/json-text.ts";
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
import {
  isSameVariations,
  useSaveVariations,
  useVariations,
  type Variations,
} from "./use-variations.ts";

/** The variations of a typed flag, which all environments share. */
export function VariationsTab() {
  const { flag } = useFlagInPage();
  const query = useVariations();
  const { mayChangeEverywhere } = permissionsOf(useKeySession());
  const { value_type: type } = flag;
  if (!isTyped(type))
    return <Warning>This flag is on or off. Its variations are fixed: on and off.</Warning>;
  return (
    <Card title="Values">
      <QueryView query={query} label="Loading the variations">
        {(variations) =>
          mayChangeEverywhere ? (
            <VariationsForm key={flag.id} type={type} current={variations} />
          ) : (
            <VariationsTable variations={variations.stored} />
          )
        }
      </QueryView>
    </Card>
  );
}

const isTyped = (type: ValueType): type is TypedValueType => type !== "boolean";

/** The variations for a key that may not change them. */
function VariationsTable({ variations }: { variations: readonly StoredVariation[] }) {
  return (
    <div className={styles.form}>
      <p className={styles.note}>
        Your key changes only one environment. The variations apply to all environments, so this key
        cannot change them.
      </p>
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

/** Edited variations, and the stored ones that they were made from. */
type Started = { readonly drafts: readonly VariationDraft[]; readonly base: Variations };

type VariationsFormProps = { type: TypedValueType; current: Variations };

/** Edits a draft of the variations. Without unsaved changes, the fields follow the stored variations. */
function VariationsForm({ type, current }: VariationsFormProps) {
  const { language: locale } = navigator;
  const [started, setStarted] = useState<Started>();
  const [isChecked, setChecked] = useState(false);
  const reset = () => {
    setStarted(undefined);
    setChecked(false);
  };
  const { mutate, isPending, error, variables } = useSaveVariations((saved, sent) => {
    setChecked(false);
    // Edits made during the request remain unsaved changes.
    setStarted((before) =>
      before === undefined || before.drafts === sent
        ? undefined
        : { drafts: before.drafts, base: saved },
    );
  });
  const { drafts, base } = started ?? { drafts: draftsOf(type, current.stored), base: current };
  const problems = variationProblems(type, drafts, locale);
  const text = problems.size > 0 ? undefined : variationsText(type, drafts, locale);
  const isDirty =
    started !== undefined && text !== variationsText(type, draftsOf(type, base.stored), locale);
  useUnsaved(isDirty);
  const isOutdated = isDirty && !isPending && !isSameVariations(base.stored, current.stored);
  const fromApi = variables?.text === text ? problemsOf(error, drafts) : undefined;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    setChecked(true);
    if (text !== undefined) mutate({ text, base: isOutdated ? current : base, drafts });
  };
  return (
    <form onSubmit={submit} className={styles.form}>
      <p className={styles.note}>
        All environments share the variations. A new value reaches applications immediately,
        wherever the variation is served. What is served is set on the tab Targeting.
      </p>
      <VariationsEditor
        type={type}
        drafts={drafts}
        problems={fromApi ?? problems}
        isChecked={isChecked}
        onChange={(changed) => setStarted({ drafts: changed, base })}
      />
      {isOutdated && <Outdated stored={current.stored} />}
      {error !== null && fromApi === undefined && !(isEditConflict(error) && isOutdated) && (
        <SaveError error={error} />
      )}
      <div className={styles.buttons}>
        {isDirty && (
          <span role="status" className={styles.unsaved}>
            {isChecked && problems.size > 0
              ? "Not saved: correct the marked fields"
              : "Unsaved changes"}
          </span>
        )}
        <Button onPress={reset} isDisabled={!isDirty || isPending}>
          {isOutdated ? "Take theirs" : "Discard"}
        </Button>
        <Button type="submit" variant="primary" isPending={isPending} isDisabled={!isDirty}>
          {isOutdated ? "Keep mine and save" : "Save variations"}
        </Button>
      </div>
    </form>
  );
}

function Outdated({ stored }: { stored: readonly StoredVariation[] }) {
  return (
    <Warning>
      Someone else changed the variations first. They are now:{" "}
      {stored.map(({ key, json }) => `${key} = ${shortened(json)}`).join("; ")}.
    </Warning>
  );
}

const maxShown = 200;

const shortened = (json: string): string =>
  json.length > maxShown ? `${json.slice(0, maxShown)}…` : json;

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
