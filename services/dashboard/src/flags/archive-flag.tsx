import { useMutation, useQueryClient } from "@tanstack/react-query";
import { Archive, ArchiveRestore } from "lucide-react";
import { unwrap } from "../api/client.ts";
import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Card } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { useFlagInPage } from "./flag-page.tsx";
import { refreshFlag } from "./flag-queries.ts";
import styles from "./settings-tab.module.css";
import { ifVersion } from "./state-route.ts";

/** Archives the flag, or restores it. Both can be undone, so nothing asks first. */
export function ArchiveFlag() {
  const { api } = useKeySession();
  const { flag } = useFlagInPage();
  const { reason } = usePermission("change_project");
  const client = useQueryClient();
  const isArchived = flag.archived_at !== null;
  const { mutate, isPending, error } = useMutation({
    mutationFn: (archived: boolean) =>
      unwrap(
        api.PATCH("/api/v1/flags/{id}", {
          params: { path: { id: flag.id }, header: ifVersion(flag.version) },
          body: { archived },
        }),
      ),
    onSuccess: async (_saved, archived) => {
      await refreshFlag(client, api, flag.key);
      notify({ text: `${flag.key} is ${archived ? "archived" : "restored"}.` });
    },
  });
  const Icon = isArchived ? ArchiveRestore : Archive;
  return (
    <Card title={isArchived ? "Restore the flag" : "Archive the flag"}>
      <div className={styles.danger}>
        <p>
          {isArchived
            ? "The list of flags hides this flag. Applications still get its values."
            : "The list of flags hides archived flags. Applications still get their values."}
        </p>
        <Button isPending={isPending} onPress={() => mutate(!isArchived)} whyNot={reason}>
          <Icon size={16} aria-hidden /> {isArchived ? "Restore flag" : "Archive flag"}
        </Button>
      </div>
      {error !== null && <ErrorPanel error={error} />}
    </Card>
  );
}
