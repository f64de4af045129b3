import { unwrap } from "../api/client.ts";
import type { User } from "../api/schema.d.ts";
import { Section } from "../operator/section.tsx";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./people.module.css";
import { invitationsRoute, useInvitations, usePeopleWrite } from "./people-queries.ts";

type Invitation = { id: string; user: User; created_at: string; expires_at: string };

/** The open invitations, without their links. */
export function InvitationsSection() {
  const invitations = useInvitations({ enabled: true });
  const { mutate, isPending, error } = usePeopleWrite(
    (api, path, invitationId: string) =>
      unwrap(
        api.DELETE(`${invitationsRoute}/{invitationId}`, {
          params: { path: { ...path, invitationId } },
        }),
      ),
    () => notify({ text: "The invitation is withdrawn. Its link no longer works." }),
  );
  const columns: readonly Column<Invitation>[] = [
    {
      id: "email",
      header: "E-mail",
      cell: ({ user }) => <span className={styles.long}>{user.email}</span>,
    },
    { id: "created", header: "Invited", cell: ({ created_at: at }) => <Time at={at} /> },
    { id: "expires", header: "Link works until", cell: ({ expires_at: at }) => <Time at={at} /> },
    actionsColumn(({ id, user }) => (
      <Button
        size="small"
        isDisabled={isPending}
        onPress={() => mutate(id)}
        aria-label={`Withdraw the invitation of ${user.email}`}
      >
        Withdraw
      </Button>
    )),
  ];
  return (
    <Section
      title="Open invitations"
      lead="A withdrawn link no longer works. The user and the role stay: delete the user as well if the person is not to join. To replace a lost link, invite the same address again."
    >
      {error !== null && <ErrorPanel error={error} />}
      <QueryView query={invitations} label="Loading the invitations">
        {(open) =>
          open.length === 0 ? (
            <p className={styles.note}>There are no open invitations.</p>
          ) : (
            <Table label="Open invitations" columns={columns} rows={open} />
          )
        }
      </QueryView>
    </Section>
  );
}
