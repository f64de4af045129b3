import { X } from "lucide-react";
import { type ReactNode, use, useEffect, useMemo, useState } from "react";
import { Dialog as AriaDialog, Heading, Modal, ModalOverlay } from "react-aria-components";
import { Button, IconButton } from "./button.tsx";
import { DialogContext } from "./dialog-context.ts";
import { ErrorPanel } from "./error-panel.tsx";
import { TextField } from "./fields.tsx";
import { keepFocus } from "./kept-focus.ts";
import { useLeaveGuard } from "./leave-guard.ts";
import styles from "./overlay.module.css";

type DialogProps = {
  title: string;
  onClose: () => void;
  wide?: boolean;
  children: ReactNode;
};

/**
 * Keeps the dialog around it open while a request is pending. Otherwise its result, or what was typed for it, would be
 * lost.
 */
export function KeepOpen({ isPending }: { isPending: boolean }) {
  const { keepOpen } = use(DialogContext);
  useEffect(() => {
    keepOpen(isPending);
    return () => keepOpen(false);
  }, [isPending, keepOpen]);
  return null;
}

/**
 * A modal dialog, open while it is rendered. Escape, the cross and a click outside close it, after a question if
 * something was entered in it, and except while a `KeepOpen` in it says otherwise.
 */
export function Dialog({ title, onClose, wide = false, children }: DialogProps) {
  const [isKeptOpen, setKeptOpen] = useState(false);
  const [hasInput, setInput] = useState(false);
  const content = useMemo(() => ({ keepOpen: setKeptOpen, markInput: () => setInput(true) }), []);
  const dismiss = useDismiss(hasInput, onClose);
  useEffect(() => keepFocus, []);
  return (
    <ModalOverlay
      className={styles.backdrop ?? ""}
      isOpen
      onOpenChange={(open) => open || dismiss()}
      isDismissable={!isKeptOpen}
      isKeyboardDismissDisabled={isKeptOpen}
    >
      <Modal className={`${styles.modal} ${wide ? styles.wide : ""}`}>
        <AriaDialog className={styles.dialog ?? ""}>
          <div className={styles.dialogHead}>
            <Heading slot="title" level={2}>
              {title}
            </Heading>
            <IconButton
              icon={X}
              label="Close"
              size="small"
              onPress={dismiss}
              isDisabled={isKeptOpen}
            />
          </div>
          <DialogContext value={content}>{children}</DialogContext>
        </AriaDialog>
      </Modal>
    </ModalOverlay>
  );
}

/** Asks before input is lost. A dialog that holds a secret asks by itself, and one question is enough. */
function useDismiss(hasInput: boolean, close: () => void): () => void {
  const { unsaved, ask } = useLeaveGuard();
  if (!hasInput || unsaved === "secret") return close;
  return () => void ask("input").then((discards) => discards && close());
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
  isPending = false,
  error,
  children,
  ...dialog
}: ConfirmProps) {
  const [input, setInput] = useState("");
  return (
    <Dialog {...dialog}>
      <KeepOpen isPending={isPending} />
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
        <Button onPress={dialog.onClose} isDisabled={isPending}>
          Cancel
        </Button>
        <Button
          variant="danger"
          onPress={onConfirm}
          isPending={isPending}
          isDisabled={typed !== undefined && input !== typed.text}
        >
          {action}
        </Button>
      </DialogActions>
    </Dialog>
  );
}
