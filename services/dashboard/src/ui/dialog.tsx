import { X } from "lucide-react";
import { type ReactNode, useEffect, useState } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Button, IconButton } from "./button.tsx";
import { ErrorPanel } from "./error-panel.tsx";
import { TextField } from "./fields.tsx";
import { keepFocus } from "./kept-focus.ts";
import styles from "./overlay.module.css";

export type DialogProps = {
  title: string;
  isOpen: boolean;
  onClose: () => void;
  wide?: boolean;
  /** False if only a button closes it, because its content would be lost. */
  isDismissable?: boolean;
  children: ReactNode;
};

/** A modal dialog. Escape, the cross and a click outside close it. */
export function Dialog({
  title,
  isOpen,
  onClose,
  wide = false,
  isDismissable = true,
  children,
}: DialogProps) {
  useEffect(() => (isOpen ? keepFocus : undefined), [isOpen]);
  return (
    <ModalOverlay
      className={styles.backdrop ?? ""}
      isOpen={isOpen}
      onOpenChange={(open) => open || onClose()}
      isDismissable={isDismissable}
      isKeyboardDismissDisabled={!isDismissable}
    >
      <Modal className={`${styles.modal} ${wide ? styles.wide : ""}`}>
        <AriaDialog className={styles.dialog ?? ""}>
          <div className={styles.dialogHead}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            {isDismissable && (
              <IconButton label="Close" size="small" onPress={onClose}>
                <X size={16} aria-hidden />
              </IconButton>
            )}
          </div>
          {children}
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** The row of buttons at the end of a dialog or form, the main action last. */
export function DialogActions({ children }: { children: ReactNode }) {
  return <div className={styles.actions}>{children}</div>;
}

type ConfirmProps = Omit<DialogProps, "wide"> & {
  /** The label of the action, such as "Delete flag". */
  action: string;
  /** A text that must be typed before the action, such as the key of a flag. */
  typed?: { label: string; text: string };
  onConfirm: () => void;
  isPending?: boolean;
  error?: unknown;
};

/** Asks before an action that cannot be undone. */
export function ConfirmDialog({
  action,
  typed,
  onConfirm,
  isPending,
  error,
  children,
  ...dialog
}: ConfirmProps) {
  const [input, setInput] = useState("");
  const close = () => {
    setInput("");
    dialog.onClose();
  };
  return (
    <Dialog {...dialog} onClose={close}>
      {children}
      {typed !== undefined && (
        <TextField
          label={typed.label}
          description={<code>{typed.text}</code>}
          value={input}
          onChange={setInput}
          autoFocus
          isCode
        />
      )}
      {error != null && <ErrorPanel error={error} />}
      <DialogActions>
        <Button onPress={close}>Cancel</Button>
        <Button
          variant="danger"
          onPress={onConfirm}
          isPending={isPending ?? false}
          isDisabled={typed !== undefined && input !== typed.text}
        >
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
