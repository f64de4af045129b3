import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { Environment } from "../api/schema.d.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { CautionBadge } from "../state/caution.tsx";
import { ProtectedBadge } from "../state/protected-badge.tsx";
import { protectionText } from "../state/protection.ts";
import { capitalized } from "../state/words.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Switch } from "../ui/fields.tsx";
import { Page } from "../ui/page.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./environments.module.css";
import { ProtectionDialog } from "./protection-dialog.tsx";

/** The environments of the project, their protection and their mark. Only the operator creates, renames and deletes environments. */
export function EnvironmentsPage() {
  const session = useKeySession();
  const { refresh } = useSessions();
  const { reason } = usePermission("change_environments");
  const { api, me, token } = session;
  const { mutate, isPending, error } = useMutation({
    mutationFn: ({ id, caution }: Pick<Environment, "id" | "caution">) =>
      unwrap(
        api.PATCH("/api/v1/projects/{projectId}/environments/{environmentId}", {
          params: { path: { projectId: me.project.id, environmentId: id } },
          body: { caution },
        }),
      ),
    onSuccess: () => refresh(token),
  });
  const [chosen, setChosen] = useState<Environment>();
  const columns: readonly Column<Environment>[] = [
    {
      id: "name",
      header: "Name",
      cell: ({ name, caution, protected: protection }) => (
        <>
          <bdi>{name}</bdi> {protection !== null && <ProtectedBadge />}{" "}
          {caution && <CautionBadge />}
        </>
      ),
    },
    {
      id: "protection",
      header: "Protection",
      cell: (environment) => (
        <ProtectionCell environment={environment} onChange={() => setChosen(environment)} />
      ),
    },
    { id: "created", header: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: "caution",
      header: "Ask before changes",
      cell: ({ id, name, caution }) => (
        <Switch
          label={`Ask before changes in ${name}`}
          isLabelHidden
          isSelected={caution}
          isDisabled={isPending}
          whyNot={reason}
          onChange={(next) => mutate({ id, caution: next })}
        />
      ),
    },
  ];
  return (
    <Page
      title="Environments"
      lead="Every flag has a separate state in each environment. In an environment with the mark “Caution”, the dashboard shows what a change does, and asks before it makes the change. In a protected environment, other people approve a change first."
    >
      {error !== null && <ErrorPanel error={error} />}
      <Table label="Environments" columns={columns} rows={me.environments} />
      {chosen !== undefined && (
        <ProtectionDialog environment={chosen} onClose={() => setChosen(undefined)} />
      )}
    </Page>
  );
}

type ProtectionCellProps = { environment: Environment; onChange: () => void };

function ProtectionCell({ environment, onChange }: ProtectionCellProps) {
  const { name, protected: protection } = environment;
  const { reason } = usePermission("protect", environment);
  const action = protection === null ? "Protect" : "Change";
  return (
    <span className={styles.protection}>
      {protection !== null && capitalized(protectionText(protection))}
      <Button
        size="small"
        whyNot={reason}
        onPress={onChange}
        aria-label={`${action} ${protection === null ? name : `the protection of ${name}`}`}
      >
        {action}
      </Button>
    </span>
  );
}
