import { type FormEvent, useState } from "react";
import type { Audience, ChangeAudienceList, Environment } from "../api/schema.d.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { listText } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { TextField } from "../ui/fields.tsx";
import { Card } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { entriesProposal, listRemovalProposal } from "./audience-proposal.ts";
import styles from "./audiences.module.css";
import { UploadForm } from "./upload-form.tsx";
import { useChangeList, useLookUp, useUpdateAudience } from "./use-audience-changes.ts";

type ListCardProps = {
  audience: Audience;
  mayChange: boolean;
  /** A protected environment that a change of the list reaches. */
  reached: Environment | undefined;
};

/** The list of an audience: its size, single entries, and the upload of another list. */
export function ListCard({ audience, mayChange, reached }: ListCardProps) {
  const { list } = audience;
  return (
    <Card
      title="List"
      actions={mayChange && list !== null && <RemoveList {...{ audience, list, reached }} />}
    >
      <div className={styles.stack}>
        <p role="status">
          {list === null
            ? "The audience has no list."
            : `The list has ${listText(list)}. Halyard never shows its entries.`}
        </p>
        {(list !== null || mayChange) && <Entries {...{ audience, mayChange, reached }} />}
        {mayChange && reached === undefined && <UploadForm audience={audience} />}
        {mayChange && reached !== undefined && (
          <p className={styles.note}>
            A whole list cannot be uploaded while <bdi>{reached.name}</bdi> is protected. Request to
            add and remove entries here, or up to 10,000 at once over the API.
          </p>
        )}
      </div>
    </Card>
  );
}

type Result = { entry: string; text: string };

/** The requests about one entry. `result` says what the last one found or did. */
function useEntry(key: string, reached: Environment | undefined) {
  const { isProposed, change: changeOrPropose } = useProposing(reached);
  const [result, setResult] = useState<Result>();
  const lookUp = useLookUp(key);
  const change = useChangeList(key);
  const start = () => {
    setResult(undefined);
    lookUp.reset();
    change.reset();
  };
  const show = (entry: string, text: string) => setResult({ entry, text });
  const send = (entry: string, body: ChangeAudienceList, text: string) => {
    start();
    changeOrPropose({
      make: () => change.mutate(body, { onSuccess: () => show(entry, text) }),
      proposal: () => entriesProposal(key, body),
    });
  };
  return {
    result,
    isProposed,
    isPending: lookUp.isPending || change.isPending,
    error: lookUp.error ?? change.error,
    lookUp(entry: string): void {
      start();
      const textOf = (isMember: boolean) => (isMember ? "is in the list." : "is not in the list.");
      lookUp.mutate(entry, { onSuccess: (isMember) => show(entry, textOf(isMember)) });
    },
    add: (entry: string) => send(entry, { add: [entry] }, "is in the list now."),
    remove: (entry: string) => send(entry, { remove: [entry] }, "is not in the list any more."),
  };
}

/** Looks up, adds and removes one entry. It exists only in this component, because it can be personal data. */
function Entries({ audience: { key, list }, mayChange, reached }: ListCardProps) {
  const [entry, setEntry] = useState("");
  const { result, isProposed, isPending, error, lookUp, add, remove } = useEntry(key, reached);
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
            {isProposed ? "Request to add" : "Add"}
          </Button>
        )}
        {mayChange && list !== null && (
          <Button isDisabled={isDisabled} onPress={() => remove(entry)}>
            {isProposed ? "Request to remove" : "Remove"}
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

type RemoveListProps = Pick<ListCardProps, "audience" | "reached"> & {
  list: NonNullable<Audience["list"]>;
};

function RemoveList({ audience, list, reached }: RemoveListProps) {
  const { key, version } = audience;
  const { isProposed, change } = useProposing(reached);
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
          action={isProposed ? "Request the change" : "Remove the list"}
          onClose={close}
          onConfirm={() =>
            change({
              make: () => mutate({ version, body: { list: null } }),
              proposal: () => {
                close();
                return listRemovalProposal(audience);
              },
            })
          }
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
