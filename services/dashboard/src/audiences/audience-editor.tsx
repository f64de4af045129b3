import { Plus, X } from "lucide-react";
import { useCallback, useRef } from "react";
import type { Audience, Environment } from "../api/schema.d.ts";
import { usePermission } from "../session/use-permission.ts";
import { ConditionsEditor } from "../targeting/conditions-editor.tsx";
import { OperatorsContext } from "../targeting/editor-context.ts";
import { fieldKey, type Problems } from "../targeting/problems.ts";
import { SaveBar } from "../targeting/save-bar.tsx";
import { useOperators } from "../targeting/targeting-queries.ts";
import { Badge } from "../ui/badge.tsx";
import { Button, IconButton } from "../ui/button.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { TextField } from "../ui/fields.tsx";
import { Card, Warning } from "../ui/panels.tsx";
import { Restricted } from "../ui/restricted.tsx";
import {
  type Alternative,
  type AudienceDraft,
  maxAlternatives,
  newAlternative,
  partLabels,
  reachText,
} from "./audience-draft.ts";
import styles from "./audiences.module.css";
import { type Question, useAudienceEdit } from "./use-audience-edit.ts";

type AudienceEditorProps = {
  stored: Audience;
  mayChange: boolean;
  /** A protected environment that a change of the alternatives reaches. */
  reached: Environment | undefined;
};

/** The alternatives of an audience, its name and its description, with a bar that saves them. */
export function AudienceEditor({ stored, mayChange, reached }: AudienceEditorProps) {
  const edit = useAudienceEdit(stored, reached);
  const { reason } = usePermission("change_project");
  const operators = useOperators().data;
  const { draft, change, problems } = edit;
  return (
    <fieldset className={styles.editor} disabled={!mayChange} aria-label="Settings of the audience">
      <Conflicts edit={edit} />
      <Card title="Who is in the audience">
        <OperatorsContext value={operators}>
          <Alternatives draft={draft} problems={problems} change={change} />
        </OperatorsContext>
      </Card>
      <Card title="Name and description">
        <div className={styles.stack}>
          <Restricted reason={mayChange ? reason : undefined}>
            <TextField
              label="Name"
              value={draft.name}
              onChange={(name) => change((before) => ({ ...before, name }))}
              error={problems.get(fieldKey("", "name"))}
              isRequired
            />
            <TextField
              label="Description"
              value={draft.description}
              onChange={(description) => change((before) => ({ ...before, description }))}
              rows={2}
            />
          </Restricted>
        </div>
      </Card>
      {edit.error !== undefined && <ErrorPanel error={edit.error} />}
      {edit.isDirty && (
        <SaveBar
          problemCount={problems.size}
          isPending={edit.isPending}
          openConflicts={edit.conflicts.length}
          isProposed={edit.isProposed}
          onSave={edit.save}
          onDiscard={edit.discard}
        />
      )}
      {edit.question !== undefined && (
        <ReachDialog question={edit.question} onClose={edit.closeQuestion} />
      )}
    </fieldset>
  );
}

/** Says that another person changed the audience first, and lets the person choose where both changed the same. */
function Conflicts({ edit }: { edit: ReturnType<typeof useAudienceEdit> }) {
  const { isMerged, conflicts, decide } = edit;
  if (conflicts.length === 0)
    return (
      isMerged && (
        <Warning>
          Someone else changed the audience first. Your draft contains these changes now. Check it,
          then save it.
        </Warning>
      )
    );
  return (
    <>
      {conflicts.map((part) => (
        <Warning
          key={part}
          action={
            <>
              <Button size="small" onPress={() => decide(part, "theirs")}>
                Take theirs
              </Button>
              <Button size="small" onPress={() => decide(part, "mine")}>
                Keep mine
              </Button>
            </>
          }
        >
          {partLabels[part]}: you both changed this.
        </Warning>
      ))}
    </>
  );
}

type AlternativesProps = {
  draft: AudienceDraft;
  problems: Problems;
  change: (next: (draft: AudienceDraft) => AudienceDraft) => void;
};

function Alternatives({ draft: { alternatives }, problems, change }: AlternativesProps) {
  const adder = useRef<HTMLDivElement>(null);
  const changeAll = (changed: (before: readonly Alternative[]) => readonly Alternative[]) =>
    change((before) => ({ ...before, alternatives: changed(before.alternatives) }));
  const remove = (uid: string) => {
    changeAll((before) => before.filter((other) => other.uid !== uid));
    adder.current?.querySelector("button")?.focus();
  };
  return (
    <div className={styles.stack}>
      <p className={styles.note}>
        {alternatives.length === 0
          ? "Without alternatives, only the users of the list are in the audience."
          : "A user is in the audience if one of the alternatives matches, or if the list has the user."}
      </p>
      {alternatives.map((alternative, index) => (
        <AlternativeEditor
          key={alternative.uid}
          alternative={alternative}
          label={`Alternative ${index + 1}`}
          problems={problems}
          changeAll={changeAll}
          onRemove={() => remove(alternative.uid)}
        />
      ))}
      <div ref={adder}>
        <Button
          onPress={() => changeAll((before) => [...before, newAlternative()])}
          isDisabled={alternatives.length >= maxAlternatives}
        >
          <Plus size={16} aria-hidden /> Add alternative
        </Button>
      </div>
    </div>
  );
}

type AlternativeEditorProps = {
  alternative: Alternative;
  label: string;
  problems: Problems;
  changeAll: (changed: (before: readonly Alternative[]) => readonly Alternative[]) => void;
  onRemove: () => void;
};

function AlternativeEditor(props: AlternativeEditorProps) {
  const { alternative, label, problems, changeAll, onRemove } = props;
  const { uid, conditions } = alternative;
  const change = useCallback<Parameters<typeof ConditionsEditor>[0]["change"]>(
    (changed) =>
      changeAll((before) =>
        before.map((other) =>
          other.uid === uid ? { uid, conditions: changed(other.conditions) } : other,
        ),
      ),
    [changeAll, uid],
  );
  const problem = problems.get(fieldKey(uid, "conditions"));
  return (
    <section className={styles.alternative} aria-label={label}>
      <div className={styles.alternativeHead}>
        <h3>{label}</h3>
        <IconButton icon={X} label={`Remove ${label}`} size="small" onPress={onRemove} />
      </div>
      <ConditionsEditor
        owner={uid}
        label={label}
        legend="All of these must be true:"
        conditions={conditions}
        problems={problems}
        hasReferences={false}
        change={change}
      />
      {problem !== undefined && (
        <p role="alert" className={styles.problem}>
          {problem}
        </p>
      )}
    </section>
  );
}

/** Flags that the question names. The others are counted. */
const maxNamed = 50;

/** Says which flags a change reaches, before it is saved. */
function ReachDialog({ question, onClose }: { question: Question; onClose: () => void }) {
  const { flags, save } = question;
  return (
    <Dialog title="Save the audience?" onClose={onClose}>
      <p>
        Changing this touches <strong>{reachText(flags)}</strong>:
      </p>
      <ul className={styles.uses} aria-label="Flags that the change touches">
        {flags.slice(0, maxNamed).map(({ flag_id, flag_key, environment_id, ...place }) => (
          <li key={`${flag_id} ${environment_id}`}>
            <code>{flag_key}</code> in <bdi>{place.environment_name}</bdi>{" "}
            <Badge tone={place.enabled ? "on" : "neutral"}>{place.enabled ? "On" : "Off"}</Badge>
          </li>
        ))}
        {flags.length > maxNamed && <li>and {flags.length - maxNamed} more</li>}
      </ul>
      <DialogActions>
        <Button onPress={onClose} autoFocus>
          Cancel
        </Button>
        <Button
          variant="primary"
          onPress={() => {
            onClose();
            save();
          }}
        >
          Save
        </Button>
      </DialogActions>
    </Dialog>
  );
}
