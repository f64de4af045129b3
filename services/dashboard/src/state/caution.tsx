import { ShieldAlert } from "lucide-react";
import { type ReactNode, useCallback, useState } from "react";
import type { Environment } from "../api/schema.d.ts";
import { Badge } from "../ui/badge.tsx";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActions } from "../ui/dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import type { Difference } from "./difference.ts";
import { Differences } from "./differences.tsx";

/** The mark of an environment in which changes need a confirmation. */
export function CautionBadge() {
  return (
    <Badge tone="warning">
      <ShieldAlert size={12} aria-hidden /> Caution
    </Badge>
  );
}

type Question = {
  title: string;
  /** The label of the button that makes the change. */
  action: string;
  changes: readonly Difference[];
  /** A reason to ask in any environment. */
  warning?: string | undefined;
};

/**
 * Returns a function that makes a change in an environment: at once, or after a confirmation if the environment has the
 * mark, or the question has a warning. `dialog` is the question while it is open.
 */
export function useCaution({ name, caution }: Environment) {
  const [asked, setAsked] = useState<Question & { change: () => void }>();
  const ask = useCallback(
    (question: () => Question, change: () => void) => {
      const asked = question();
      if (caution || asked.warning !== undefined) setAsked({ ...asked, change });
      else change();
    },
    [caution],
  );
  const close = () => setAsked(undefined);
  const dialog: ReactNode = asked !== undefined && (
    <Dialog title={asked.title} onClose={close}>
      {asked.warning !== undefined && <Warning>{asked.warning}</Warning>}
      <p>
        This changes <bdi>{name}</bdi>
        {caution && ", which is marked with caution"}:
      </p>
      <Differences items={asked.changes} label="Changes" />
      <DialogActions>
        <Button onPress={close} autoFocus>
          Cancel
        </Button>
        <Button
          variant="danger"
          onPress={() => {
            close();
            asked.change();
          }}
        >
          {asked.action}
        </Button>
      </DialogActions>
    </Dialog>
  );
  return { ask, dialog };
}
