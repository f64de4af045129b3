import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { ApiProblem, isEditConflict } from "../api/problem.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Card, Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { putIntoList, readFlag } from "./flag-queries.ts";
import styles from "./settings-tab.module.css";
import { ifVersion } from "./state-route.ts";

/** Deletes the flag in every environment, and returns to the list. */
export function DeleteFlag() {
  /** The version of the flag that the person saw when the dialog opened. */
  const [seen, setSeen] = useState<number>();
  const { api } = useKeySession();
  const { flag } = useFlagInPage();
  const { reason } = usePermission("change_project");
  const client = useQueryClient();
  const navigate = useNavigate();
  const { mutate, isPending, error, reset } = useMutation({
    mutationFn: () =>
      unwrap(
        api.DELETE("/api/v1/flags/{id}", {
          params: { path: { id: flag.id }, header: ifVersion(seen) },
        }),
      ),
    onError: async (failure) => {
      if (!isEditConflict(failure)) return;
      // The person has been warned, so a second confirmation applies to the flag as it is now.
      const current = await readFlag(api, flag.key);
      setSeen((before) => before && current?.version);
    },
    onSuccess: () => {
      putIntoList(client, flag.key, undefined);
      notify({ text: `${flag.key} is deleted.` });
      // Unsaved settings of a deleted flag cannot be saved any more, so nothing asks about them.
      void navigate({ to: "/flags", ignoreBlocker: true });
    },
  });
  const hasChanged = isEditConflict(error);
  const isRequired = error instanceof ApiProblem && error.code === "CONFLICT_001";
  const close = () => {
    reset();
    setSeen(undefined);
  };
  return (
    <Card title="Delete the flag">
      <div className={styles.danger}>
        <p>Applications that still ask for it get their fallback value. This cannot be undone.</p>
        <Button variant="danger" onPress={() => setSeen(flag.version)} whyNot={reason}>
          <Trash2 size={16} aria-hidden /> Delete flag
        </Button>
      </div>
      {seen !== undefined && (
        <ConfirmDialog
          title={`Delete ${flag.key}?`}
          action="Delete flag"
          onClose={close}
          typed={{ label: "Type the key of the flag to delete it", text: flag.key }}
          onConfirm={() => mutate()}
          isPending={isPending}
          error={hasChanged || isRequired ? undefined : error}
        >
          {isRequired && <Warning>{error.message}</Warning>}
          {hasChanged && (
            <Warning>
              Someone changed the flag while this dialog was open, so it is not deleted. Its history
              shows the change. Delete it if you still want to.
            </Warning>
          )}
          <p>
            It is deleted in every environment at once, with its rules and schedules. Its history
            stays in the audit log.
          </p>
        </ConfirmDialog>
      )}
    </Card>
  );
}
