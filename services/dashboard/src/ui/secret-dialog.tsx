import { type ReactNode, useState } from "react";
import { Button } from "./button.tsx";
import { Dialog, DialogActions } from "./dialog.tsx";
import { Checkbox } from "./fields.tsx";
import { useUnsaved } from "./leave-guard.ts";
import styles from "./overlay.module.css";

type Props = {
  title: string;
  /** The name of what is shown, such as "key". */
  kind: "key" | "secret" | "link";
  onClose: () => void;
  /** An additional action at the end, such as using the new key. */
  action?: (isCopied: boolean) => ReactNode;
  wide?: boolean;
  children: ReactNode;
};

/**
 * Shows a key, secret or link, which exists only in the state of the caller. It closes after a confirmation that the secret
 * was copied, because nothing can show it again.
 */
export function SecretDialog(props: Props) {
  const { title, kind, onClose, action, wide = false, children } = props;
  const [isCopied, setCopied] = useState(false);
  const [isReminded, setReminded] = useState(false);
  useUnsaved(!isCopied, "secret");
  const close = () => (isCopied ? onClose() : setReminded(true));
  return (
    <Dialog title={title} onClose={close} wide={wide}>
      {children}
      <Checkbox isSelected={isCopied} onChange={setCopied}>
        I have copied the {kind}
      </Checkbox>
      {isReminded && !isCopied && (
        <p role="alert" className={styles.reminder}>
          Confirm that you have copied the {kind}, then close this window.
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
