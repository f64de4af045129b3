import type { ReactNode } from "react";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./operator.module.css";
import { useWrite } from "./operator-queries.ts";

/** Deletes something after its name is typed. Lists the consequences first. */
export function DeletionDialog({
  kind,
  name,
  typed = "Type the name to confirm",
  ends,
  send,
  leave,
  onClose,
  children,
}: {
  /** The kind of the deleted thing, such as "project". */
  kind: string;
  name: string;
  typed?: string;
  /** Consequences of the deletion, one sentence each. */
  ends: readonly string[];
  send: () => Promise<unknown>;
  /** Opens another page, if this one shows the deleted thing. */
  leave?: () => Promise<void>;
  onClose: () => void;
  children?: ReactNode;
}) {
  const { mutate, isPending, error } = useWrite(
    send,
    () => {
      onClose();
      notify({ text: `${name} is deleted.` });
    },
    leave,
  );
  return (
    <ConfirmDialog
      title={`Delete ${name}?`}
      action={`Delete ${kind}`}
      typed={{ label: typed, text: name }}
      onClose={onClose}
      onConfirm={() => mutate(undefined)}
      isPending={isPending}
      error={error}
    >
      <ul className={styles.ends}>
        {ends.map((sentence) => (
          <li key={sentence}>{sentence}</li>
        ))}
      </ul>
      {children}
      <p>
        <strong>This cannot be undone.</strong>
      </p>
    </ConfirmDialog>
  );
}
