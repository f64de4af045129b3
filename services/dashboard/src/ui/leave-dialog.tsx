import { useBlocker } from "@tanstack/react-router";
import { Button } from "./button.tsx";
import { Dialog, DialogActions } from "./dialog.tsx";

/** Asks before unsaved changes are lost: on another page, in another environment, and when the window closes. */
export function LeaveDialog({ isDirty }: { isDirty: boolean }) {
  const { status, proceed, reset } = useBlocker({
    shouldBlockFn: () => isDirty,
    enableBeforeUnload: isDirty,
    withResolver: true,
  });
  return (
    <Dialog title="Leave without saving?" isOpen={status === "blocked"} onClose={() => reset?.()}>
      <p>Your changes are not saved. If you leave, they are lost.</p>
      <DialogActions>
        <Button variant="danger" onPress={() => proceed?.()}>
          Leave without saving
        </Button>
        <Button variant="primary" onPress={() => reset?.()} autoFocus>
          Keep editing
        </Button>
      </DialogActions>
    </Dialog>
  );
}
