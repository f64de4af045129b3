import { type ReactNode, useState } from "react";
import type { IssuedApiKey } from "../api/schema.d.ts";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { Checkbox } from "../ui/fields.tsx";
import { Warning } from "../ui/panels.tsx";
import styles from "./keys.module.css";

/**
 * Shows a new key, which exists only in the state of this dialog. It closes after a confirmation that the key was
 * copied, because nothing can show the key again.
 */
export function NewKeyDialog({
  issued,
  note,
  onClose,
  action,
}: {
  issued: IssuedApiKey;
  /** The next event, such as the end of the old key. */
  note?: ReactNode;
  onClose: () => void;
  /** An additional action at the end, such as using the new key. */
  action?: (isCopied: boolean) => ReactNode;
}) {
  const [isCopied, setCopied] = useState(false);
  const [isReminded, setReminded] = useState(false);
  const close = () => (isCopied ? onClose() : setReminded(true));
  return (
    <Dialog title={`The new key ${issued.name}`} isOpen onClose={close}>
      <Warning>
        Copy the key now. It is shown only once: Halyard stores no copy of it.
        {issued.kind === "server" && " Keep it in a password manager, and never in a web page."}
      </Warning>
      <CodeBlock
        title={issued.kind === "server" ? "Server key" : "Client key"}
        code={issued.key}
        wraps
      />
      {note !== undefined && <p>{note}</p>}
      <Checkbox isSelected={isCopied} onChange={setCopied}>
        I have copied the key
      </Checkbox>
      {isReminded && !isCopied && (
        <p role="alert" className={styles.reminder}>
          Confirm that you have copied the key, then close this window.
        </p>
      )}
      <DialogActions>
        {action?.(isCopied)}
        <Button
          variant={action === undefined ? "primary" : "secondary"}
          isDisabled={!isCopied}
          onPress={onClose}
        >
          Close
        </Button>
      </DialogActions>
    </Dialog>
  );
}
