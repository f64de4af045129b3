import { useState } from "react";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useWrite } from "./operator-queries.ts";

type NameDialogProps = {
  title: string;
  action: string;
  /** The present name of a resource that is renamed. */
  before?: string;
  description: string;
  send: (name: string) => Promise<unknown>;
  onClose: () => void;
};

/** Creates or renames a resource whose only field is its name. */
export function NameDialog({ before = "", description, send, ...dialog }: NameDialogProps) {
  const [name, setName] = useState(before);
  const { mutate, isPending, error } = useWrite(send, dialog.onClose);
  return (
    <FormDialog
      {...dialog}
      onSubmit={() => mutate(name.trim())}
      isPending={isPending}
      isComplete={name.trim() !== "" && name.trim() !== before}
      error={error}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        autoFocus
        isRequired
        description={description}
      />
    </FormDialog>
  );
}

type RenameDialogProps = {
  title: string;
  name: string;
  rename: (name: string) => Promise<unknown>;
  onClose: () => void;
};

/** Renames a resource. Its id stays, so keys and links remain valid. */
export function RenameDialog({ name, rename, ...dialog }: RenameDialogProps) {
  const description = "Keys and links keep working, because they contain no names.";
  return (
    <NameDialog action="Rename" description={description} before={name} send={rename} {...dialog} />
  );
}
