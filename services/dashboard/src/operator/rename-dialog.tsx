import { useState } from "react";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useWrite } from "./operator-queries.ts";

/** Renames a resource. Its id stays, so keys and links remain valid. */
export function RenameDialog({
  title,
  name: before,
  rename,
  onClose,
}: {
  title: string;
  name: string;
  rename: (name: string) => Promise<unknown>;
  onClose: () => void;
}) {
  const [name, setName] = useState(before);
  const { mutate, isPending, error } = useWrite(rename, onClose);
  return (
    <FormDialog
      title={title}
      action="Rename"
      onClose={onClose}
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
        description="Keys and links keep working, because they contain no names."
      />
    </FormDialog>
  );
}
