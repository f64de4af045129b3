import { type FormEvent, useState } from "react";
import type { Audience } from "../api/schema.d.ts";
import { listText } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { TextField } from "../ui/fields.tsx";
import { Card } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./audiences.module.css";
import { UploadForm } from "./upload-form.tsx";
import { useChangeList, useLookUp, useUpdateAudience } from "./use-audience-changes.ts";

type ListCardProps = { audience: Audience; mayChange: boolean };

/** The list of an audience: its size, single entries, and the upload of another list. */
export function ListCard({ audience, mayChange }: ListCardProps) {
  const { list } = audience;
  return (
    <Card
      title="List"
      actions={mayChange && list !== null && <RemoveList audience={audience} list={list} />}
    >
      <div className={styles.stack}>
        <p role="status">
          {list === null
            ? "The audience has no list."
            : `The list has ${listText(list)}. Halyard never shows its entries.`}
        </p>
        {(list !== null || mayChange) && <Entries audience={audience} mayChange={mayChange} />}
        {mayChange && <UploadForm audience={audience} />}
      </div>
    </Card>
  );
}

type Result = { entry: string; text: string };

/** The requests about one entry. `result` says what the last one found or did. */
function useEntry(key: string) {
  const [result, setResult] = useState<Result>();
  const lookUp = useLookUp(key);
  const change = useChangeList(key);
  const start = () => {
    setResult(undefined);
    lookUp.reset();
    change.reset();
  };
  const show = (entry: string, text: string) => setResult({ entry, text });
  return {
    result,
    isPending: lookUp.isPending || change.isPending,
    error: lookUp.error ?? change.error,
    lookUp(entry: string): void {
      start();
      const textOf = (isMember: boolean) => (isMember ? "is in the list." : "is not in the list.");
      lookUp.mutate(entry, { onSuccess: (isMember) => show(entry, textOf(isMember)) });
    },
    add(entry: string): void {
      start();
      change.mutate({ add: [entry] }, { onSuccess: () => show(entry, "is in the list now.") });
    },
    remove(entry: string): void {
      start();
      const onSuccess = () => show(entry, "is not in the list any more.");
      change.mutate({ remove: [entry] }, { onSuccess });
    },
  };
}

/** Looks up, adds and removes one entry. It exists only in this component, because it can be personal data. */
function Entries({ audience: { key, list }, mayChange }: ListCardProps) {
  const [entry, setEntry] = useState("");
  const { result, isPending, error, lookUp, add, remove } = useEntry(key);
  const isDisabled = entry === "" || isPending;
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (!isDisabled && list !== null) lookUp(entry);
  };
  return (
    <form className={styles.stack} autoComplete="off" onSubmit={submit}>
      <TextField
        label="One entry"
        value={entry}
        onChange={setEntry}
        placeholder="user-42"
        isCode
        description="Entries are compared exactly, with case."
      />
      <div className={styles.row}>
        {list !== null && (
          <Button type="submit" isDisabled={isDisabled}>
            Look up
          </Button>
        )}
        {mayChange && (
          <Button isDisabled={isDisabled} onPress={() => add(entry)}>
            Add
          </Button>
        )}
        {mayChange && list !== null && (
          <Button isDisabled={isDisabled} onPress={() => remove(entry)}>
            Remove
          </Button>
        )}
      </div>
      <p role="status" className={result === undefined ? "visually-hidden" : ""}>
        {result !== undefined && (
          <>
            <code>{result.entry}</code> {result.text}
          </>
        )}
      </p>
      {error !== null && <ErrorPanel error={error} />}
    </form>
  );
}

type RemoveListProps = { audience: Audience; list: NonNullable<Audience["list"]> };

function RemoveList({ audience: { key, version }, list }: RemoveListProps) {
  const [isAsking, setAsking] = useState(false);
  const { mutate, isPending, error, reset } = useUpdateAudience(key, () => {
    setAsking(false);
    notify({ text: `The list of ${key} is removed.` });
  });
  const close = () => {
    reset();
    setAsking(false);
  };
  return (
    <>
      <Button size="small" onPress={() => setAsking(true)}>
        Remove the list
      </Button>
      {isAsking && (
        <ConfirmDialog
          title={`Remove the list of ${key}?`}
          action="Remove the list"
          onClose={close}
          onConfirm={() => mutate({ version, body: { list: null } })}
          isPending={isPending}
          error={error}
        >
          <p>
            The list has {listText(list)}. Without it, only users that an alternative matches are in
            the audience. To undo this, upload the list again.
          </p>
        </ConfirmDialog>
      )}
    </>
  );
}
