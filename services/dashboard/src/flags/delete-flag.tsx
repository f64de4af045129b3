import { useMutation, useQueryClient } from "@tanstack/react-query";
import { useNavigate } from "@tanstack/react-router";
import { Trash2 } from "lucide-react";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { ApiProblem, isEditConflict } from "../api/problem.ts";
import { titleOf } from "../proposals/proposal.ts";
import { useProposing } from "../proposals/use-proposing.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { protectedAmong } from "../state/protection.ts";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Card, Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { putIntoList, readFlag } from "./flag-queries.ts";
import type { ListedFlag } from "./flag-search.ts";
import styles from "./settings-tab.module.css";
import { ifVersion } from "./state-route.ts";

/** Deletes the flag in every environment, and returns to the list. */
export function DeleteFlag() {
  /** The version of the flag that the person saw when the dialog opened. */
  const [seen, setSeen] = useState<number>();
  const { flag } = useFlagInPage();
  const reached = protectedAmong(useKeySession().me.environments);
  const { reason } = usePermission("change_project", reached);
  const { isProposed, change } = useProposing(reached);
  // The person has been warned, so a second confirmation applies to the flag as it is now.
  const { mutate, isPending, error, reset } = useDeletion((current) =>
    setSeen((before) => before && current?.version),
  );
  const hasChanged = isEditConflict(error);
  const isRequired = error instanceof ApiProblem && error.code === "CONFLICT_001";
  const close = () => {
    reset();
    setSeen(undefined);
  };
  const proposal = () => {
    close();
    return {
      title: titleOf(`Delete ${flag.key}`, []),
      changes: [{ kind: "flag_deletion" as const, flag_id: flag.id, base_version: flag.version }],
      differences: [{ label: flag.key, before: "in every environment" }],
    };
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
          action={isProposed ? "Request the deletion" : "Delete flag"}
          onClose={close}
          typed={{ label: "Type the key of the flag to delete it", text: flag.key }}
          onConfirm={() => change({ make: () => mutate(seen), proposal })}
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

/** Deletes the flag of the page if it still has the version that the person saw. Otherwise, reads the current flag. */
function useDeletion(onChanged: (current: ListedFlag | undefined) => void) {
  const { api } = useKeySession();
  const { flag } = useFlagInPage();
  const client = useQueryClient();
  const navigate = useNavigate();
  return useMutation({
    mutationFn: (version: number) => {
      const params = { path: { id: flag.id }, header: ifVersion(version) };
      return unwrap(api.DELETE("/api/v1/flags/{id}", { params }));
    },
    onError: async (failure) => {
      if (isEditConflict(failure)) onChanged(await readFlag(api, flag.key));
    },
    onSuccess: () => {
      putIntoList(client, flag.key, undefined);
      notify({ text: `${flag.key} is deleted.` });
      // Unsaved settings of a deleted flag cannot be saved any more, so nothing asks about them.
      void navigate({ to: "/flags", ignoreBlocker: true });
    },
  });
}
