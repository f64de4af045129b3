import { useState } from "react";
import type { Grant, User } from "../api/schema.d.ts";
import { Section } from "../operator/section.tsx";
import { UserDialog } from "../operator/user-dialogs.tsx";
import { includes } from "../session/person.ts";
import { useKeySession } from "../session/session.tsx";
import { Badge } from "../ui/badge.tsx";
import { RowMenu } from "../ui/menu.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { DeleteMemberDialog } from "./delete-member-dialog.tsx";
import { GiveRoleDialog } from "./grant-dialogs.tsx";
import { givesRoles } from "./may-give.ts";
import styles from "./people.module.css";
import type { PeopleData } from "./people-page.tsx";
import { RoleList } from "./role-list.tsx";

type OpenDialog = { kind: "give" | "edit" | "delete"; user: User };

/** The users with their roles, and the actions on each. */
export function UsersSection({ data }: { data: PeopleData }) {
  const { api, me } = useKeySession();
  const [dialog, setDialog] = useState<OpenDialog>();
  const close = () => setDialog(undefined);
  return (
    <Section
      title="Users"
      lead="A person signs in. A service user is for a program, and has only API keys."
    >
      <Table
        label="Users"
        columns={columnsWith(data, { ownId: me.user.id, open: setDialog })}
        rows={data.users}
      />
      {dialog?.kind === "give" && (
        <GiveRoleDialog {...data} userId={dialog.user.id} onClose={close} />
      )}
      {dialog?.kind === "edit" && (
        <UserDialog
          api={api}
          organizationId={me.organization.id}
          user={dialog.user}
          onClose={close}
        />
      )}
      {dialog?.kind === "delete" && <DeleteMemberDialog user={dialog.user} onClose={close} />}
    </Section>
  );
}

const columnsWith = (
  data: PeopleData,
  { ownId, open }: { ownId: string; open: (dialog: OpenDialog) => void },
): readonly Column<User>[] => [
  {
    id: "user",
    header: "User",
    cell: (user) => <UserName user={user} isOwn={user.id === ownId} />,
  },
  {
    id: "sign-in",
    header: "Signs in",
    cell: (user) => <span className={styles.signIn}>{signInText(user)}</span>,
  },
  {
    id: "roles",
    header: "Roles",
    cell: (user) => (
      <RoleList data={data} subject={user.email} grants={grantsOf(user, data.grants)} />
    ),
  },
  actionsColumn((user) => <UserActions user={user} own={data.own} open={open} />),
];

type UserActionsProps = {
  user: User;
  own: PeopleData["own"];
  open: (dialog: OpenDialog) => void;
};

function UserActions({ user, own, open }: UserActionsProps) {
  const reason = whyNotManage(own.role, user);
  return (
    <RowMenu
      name={user.email}
      entries={[
        {
          id: "give",
          label: "Give a role…",
          ...disabledBecause(givesRoles(own) ? undefined : "This needs the role admin."),
          onAction: () => open({ kind: "give", user }),
        },
        {
          id: "edit",
          label: "Edit…",
          ...disabledBecause(reason),
          onAction: () => open({ kind: "edit", user }),
        },
        {
          id: "delete",
          label: "Delete…",
          isDanger: true,
          ...disabledBecause(reason),
          onAction: () => open({ kind: "delete", user }),
        },
      ]}
    />
  );
}

function UserName({ user: { email, name, kind }, isOwn }: { user: User; isOwn: boolean }) {
  return (
    <div className={styles.name}>
      <strong>{name ?? email}</strong>
      {name !== null && <span className={styles.note}>{email}</span>}
      <span className={styles.badges}>
        {isOwn && <Badge tone="accent">You</Badge>}
        {kind === "service" && <Badge>Service user</Badge>}
      </span>
    </div>
  );
}

function signInText({ kind, signs_in: signsIn }: User): string {
  if (kind === "service") return "Never: only by API key";
  return signsIn ? "Yes" : "Not yet";
}

const grantsOf = (user: User, grants: readonly Grant[]) =>
  grants.filter(({ subject }) => "user_id" in subject && subject.user_id === user.id);

/** Owners manage people. Admins of the organization manage service users. */
function whyNotManage(role: PeopleData["own"]["role"], { kind }: User): string | undefined {
  const needed = kind === "service" ? "admin" : "owner";
  return includes(role, needed) ? undefined : `This needs the role ${needed} in the organization.`;
}

const disabledBecause = (reason: string | undefined) =>
  reason === undefined ? {} : { isDisabled: true, note: reason };
