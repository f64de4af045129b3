import { type FormEvent, type ReactNode, use } from "react";
import { Button } from "./button.tsx";
import { Dialog, DialogActions, KeepOpen } from "./dialog.tsx";
import { DialogContext } from "./dialog-context.ts";
import { ErrorPanel } from "./error-panel.tsx";

type DialogFormProps = {
  /** The label of the button that sends, such as "Create user". */
  action: string;
  onClose: () => void;
  onSubmit: () => void;
  isPending: boolean;
  isComplete: boolean;
  /** The action deletes something, or goes around a safeguard. */
  isDanger?: boolean;
  /** An error that no field shows. */
  error: unknown;
  children: ReactNode;
};

/** The fields of a dialog. Enter sends them. An error keeps what was typed, so the dialog waits for the response. */
function DialogForm(props: DialogFormProps) {
  const { action, onClose, onSubmit, isPending, isComplete, isDanger, error, children } = props;
  const { markInput } = use(DialogContext);
  const submit = (event: FormEvent) => {
    event.preventDefault();
    if (isComplete && !isPending) onSubmit();
  };
  return (
    <form onSubmit={submit} onInput={markInput} style={{ display: "contents" }}>
      <KeepOpen isPending={isPending} />
      {children}
      {error != null && <ErrorPanel error={error} />}
      <DialogActions>
        <Button onPress={onClose} isDisabled={isPending}>
          Cancel
        </Button>
        <Button
          type="submit"
          variant={isDanger ? "danger" : "primary"}
          isPending={isPending}
          isDisabled={!isComplete}
        >
          {action}
        </Button>
      </DialogActions>
    </form>
  );
}

/** A dialog with a few fields. */
export function FormDialog({ title, ...form }: DialogFormProps & { title: string }) {
  return (
    <Dialog title={title} onClose={form.onClose}>
      <DialogForm {...form} />
    </Dialog>
  );
}
