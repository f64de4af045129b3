import type { ReactNode } from "react";
import type { IssuedApiKey } from "../api/schema.d.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { Warning } from "../ui/panels.tsx";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import { nameOfKind } from "./key-table.tsx";

type NewKeyDialogProps = {
  issued: IssuedApiKey;
  /** The next event, such as the end of the old key. */
  note?: ReactNode;
  onClose: () => void;
  /** An additional action at the end, such as using the new key. */
  action?: (isCopied: boolean) => ReactNode;
};

/** Shows a new key once. */
export function NewKeyDialog({ issued, note, ...dialog }: NewKeyDialogProps) {
  return (
    <SecretDialog title={`The new key ${issued.name}`} kind="key" {...dialog}>
      <Warning>
        Copy the key now. It is shown only once: Halyard stores no copy of it.
        {issued.kind !== "client" && " Keep it in a password manager, and never in a web page."}
      </Warning>
      <CodeBlock title={nameOfKind[issued.kind]} code={issued.key} wraps />
      {note !== undefined && <p>{note}</p>}
    </SecretDialog>
  );
}
