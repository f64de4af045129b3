import { UserRound, UserRoundPlus } from "lucide-react";
import { useState } from "react";
import type { User } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { CodeBlock } from "../ui/code-block.tsx";
import { curl } from "../ui/curl.ts";
import { RowMenu } from "../ui/menu.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import styles from "./operator.module.css";
import { useUsers } from "./operator-queries.ts";
import { Section } from "./section.tsx";
import { DeleteUserDialog, UserDialog } from "./user-dialogs.tsx";

type OpenDialog = { kind: "create" } | { kind: "edit" | "delete"; user: User };

export function UsersSection({ organizationId }: { organizationId: string }) {
  const { api } = useOperatorSession();
  const users = useUsers(organizationId);
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  return (
    <Section
      title="Users"
      lead="Each API key belongs to a user, and every change is recorded with the user of its key."
      actions={
        <Button onPress={() => setDialog({ kind: "create" })}>
          <UserRoundPlus size={16} aria-hidden /> Create user
        </Button>
      }
    >
      <QueryView query={users} label="Loading the users">
        {(all) =>
          all.length === 0 ? (
            <FirstUser organizationId={organizationId} />
          ) : (
            <Table label="Users" columns={columnsWith(setDialog)} rows={all} />
          )
        }
      </QueryView>
      {dialog?.kind === "create" && (
        <UserDialog api={api} organizationId={organizationId} onClose={close} />
      )}
      {dialog?.kind === "edit" && (
        <UserDialog api={api} organizationId={organizationId} user={dialog.user} onClose={close} />
      )}
      {dialog?.kind === "delete" && (
        <DeleteUserDialog api={api} user={dialog.user} onClose={close} />
      )}
    </Section>
  );
}

const columnsWith = (open: (dialog: OpenDialog) => void): readonly Column<User>[] => [
  {
    id: "email",
    header: "E-mail",
    cell: ({ email }) => <span className={styles.long}>{email}</span>,
  },
  { id: "name", header: "Name", cell: ({ name }) => <span className={styles.long}>{name}</span> },
  { id: "created", header: "Created", cell: ({ created_at }) => <Time at={created_at} /> },
  actionsColumn((user) => (
    <RowMenu
      name={user.email}
      entries={[
        { id: "edit", label: "Edit", onAction: () => open({ kind: "edit", user }) },
        {
          id: "delete",
          label: "Delete",
          isDanger: true,
          onAction: () => open({ kind: "delete", user }),
        },
      ]}
    />
  )),
];

function FirstUser({ organizationId }: { organizationId: string }) {
  const body = '{"email":"ada@example.com","name":"Ada"}';
  const command = curl(`/api/v1/organizations/${organizationId}/users`, body, "OPERATOR_TOKEN");
  return (
    <EmptyState
      icon={UserRound}
      title="There are no users yet"
      examples={<CodeBlock title="Create a user over the API" code={command} />}
    >
      Create a user for each person, and for each program that changes flags.
    </EmptyState>
  );
}
