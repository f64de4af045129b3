import { type FormEvent, useState } from "react";
import { isEditConflict } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Select, TextField } from "../ui/fields.tsx";
import { useUnsaved } from "../ui/leave-guard.ts";
import { Warning } from "../ui/panels.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { flagTypes, typeLabel } from "./flag-search.ts";
import {
  type FlagSettings,
  hasSameSettings,
  type SettingsDraft,
  settingsAfterSave,
  settingsOfFlag,
  tagsProblem,
} from "./flag-settings.ts";
import styles from "./settings-tab.module.css";
import { TagsAndOwner } from "./tags-and-owner.tsx";
import { useSaveSettings } from "./use-save-settings.ts";

/** Edits a draft of the settings. Without unsaved changes, the fields follow the stored settings. */
export function FlagSettingsForm() {
  const { flag } = useFlagInPage();
  const [started, setStarted] = useState<SettingsDraft>();
  const stored = settingsOfFlag(flag);
  const { mutate, isPending, error } = useSaveSettings((saved, sent) =>
    setStarted((before) => settingsAfterSave(before, sent, saved)),
  );
  // A draft equal to its base matters only during a save: it undoes what is being saved.
  const isActive =
    started !== undefined && (isPending || !hasSameSettings(started.draft, started.base));
  const { draft, base } = isActive ? started : { draft: stored, base: stored };
  const isDirty = !hasSameSettings(draft, base);
  useUnsaved(isDirty);
  const isOutdated = isDirty && !hasSameSettings(base, stored);
  const set = (changed: Partial<FlagSettings>) =>
    setStarted({ draft: { ...draft, ...changed }, base });
  const submit = (event: FormEvent) => {
    event.preventDefault();
    mutate({ draft, base: stored });
  };
  return (
    <form onSubmit={submit} className={styles.stack}>
      <TextField label="Name" value={draft.name} onChange={(name) => set({ name })} isRequired />
      <TextField
        label="Description"
        value={draft.description}
        onChange={(description) => set({ description })}
        rows={3}
      />
      <Select
        label="Type"
        value={draft.type}
        onChange={(type) => set({ type })}
        options={flagTypes}
        description="The type is only a label: it does not affect values."
      />
      <TagsAndOwner value={draft} onChange={set} />
      {isOutdated && !isPending && <Outdated stored={stored} />}
      {error !== null && !(isEditConflict(error) && isOutdated) && <ErrorPanel error={error} />}
      <div className={styles.buttons}>
        {isDirty && (
          <span role="status" className={styles.unsaved}>
            Unsaved changes
          </span>
        )}
        <Button onPress={() => setStarted(undefined)} isDisabled={!isDirty || isPending}>
          {isOutdated ? "Take theirs" : "Discard"}
        </Button>
        <Button
          type="submit"
          variant="primary"
          isPending={isPending}
          isDisabled={!isDirty || draft.name.trim() === "" || tagsProblem(draft.tags) !== undefined}
        >
          {isOutdated ? "Keep mine and save" : "Save settings"}
        </Button>
      </div>
    </form>
  );
}

function Outdated({ stored }: { stored: FlagSettings }) {
  return (
    <Warning>
      Someone else changed the settings first. Name: “<bdi>{stored.name}</bdi>”. Type:{" "}
      {typeLabel(stored.type)}. Description:{" "}
      {stored.description === "" ? "none" : `“${stored.description}”`}. Tags:{" "}
      {stored.tags.join(", ") || "none"}. Owner: <bdi>{stored.owner ?? "none"}</bdi>.
    </Warning>
  );
}
