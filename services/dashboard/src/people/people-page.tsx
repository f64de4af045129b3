import { Bot, UserRoundPlus, Users } from "lucide-react";
import { useState } from "react";
import type { Grant, User } from "../api/schema.d.ts";
import { useMembers } from "../keys/organization-queries.ts";
import { Section } from "../operator/section.tsx";
import { UserDialog } from "../operator/user-dialogs.tsx";
import { includes } from "../session/person.ts";
import { useKeySession } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { Page } from "../ui/page.tsx";
import { EmptyState } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { type Column, Table } from "../ui/table.tsx";
import { GiveRoleDialog } from "./grant-dialogs.tsx";
import type { Projects } from "./grant-sentence.ts";
import { InvitationsSection } from "./invitations-section.tsx";
import { InviteDialog } from "./invite-dialog.tsx";
import { givesRoles } from "./may-give.ts";
import styles from "./people.module.css";
import { PeopleLog } from "./people-log.tsx";
import { type OwnRoles, useGrants, useOwnRoles, useVisibleProjects } from "./people-queries.ts";
import { RoleList } from "./role-list.tsx";
import { UsersSection } from "./users-section.tsx";

/** The data of the page. */
export type PeopleData = {
  own: OwnRoles;
  users: readonly User[];
  grants: readonly Grant[];
  projects: Projects;
};

/** The people and service users of the organization, with their roles. Keys may not read them. */
export function PeoplePage() {
  const { me } = useKeySession();
  if (me.roles !== undefined) return <PeopleOfOrganization />;
  return (
    <Page title="People">
      <EmptyState icon={Users} title="This page needs a signed-in person">
        API keys cannot see or manage people. Sign in with a passkey, your identity provider or a
        link from the operator.
      </EmptyState>
    </Page>
  );
}

function PeopleOfOrganization() {
  const { me } = useKeySession();
  const query = usePeopleData();
  const [dialog, setDialog] = useState<DialogKind>();
  const own = query.data?.own;
  return (
    <Page
      title="People"
      lead={
        <>
          Users of <bdi>{me.organization.name}</bdi> and their roles. {own && missingRights(own)}
        </>
      }
      actions={own && <Actions own={own} onOpen={setDialog} />}
    >
      <QueryView query={query} label="Loading the people">
        {(data) => (
          <>
            <UsersSection data={data} />
            <GroupsSection data={data} />
            {includes(data.own.role, "owner") && (
              <>
                <InvitationsSection />
                <PeopleLog users={data.users} projects={data.projects} />
              </>
            )}
            <OpenDialog dialog={dialog} data={data} onClose={() => setDialog(undefined)} />
          </>
        )}
      </QueryView>
    </Page>
  );
}

/** Joins the four reads of the page. */
function usePeopleData() {
  const queries = {
    own: useOwnRoles(),
    users: useMembers(),
    grants: useGrants(),
    projects: useVisibleProjects(),
  };
  const { own, users, grants, projects } = queries;
  const all = Object.values(queries);
  const isRead = own.data && users.data && grants.data && projects.data;
  const data: PeopleData | undefined = isRead && {
    own: own.data,
    users: users.data,
    grants: grants.data,
    projects: projects.data,
  };
  return {
    data,
    error: all.find(({ error }) => error !== null)?.error ?? null,
    refetch: () => Promise.all(all.map(({ refetch }) => refetch())),
  };
}

type DialogKind = "invite" | "give" | "service";

/** Names the roles that the disabled actions need. */
function missingRights(own: OwnRoles): string | undefined {
  if (includes(own.role, "owner")) return undefined;
  if (includes(own.role, "admin")) return "Only owners invite people and delete their users.";
  return givesRoles(own)
    ? "You give roles where you are an admin. Only owners invite people and delete their users."
    : "Admins give roles, and owners invite and remove people.";
}

type ActionsProps = { own: OwnRoles; onOpen: (dialog: DialogKind) => void };

/** The actions of the page. The lead gives the reason for disabled ones. */
function Actions({ own, onOpen }: ActionsProps) {
  return (
    <>
      <Button isDisabled={!includes(own.role, "admin")} onPress={() => onOpen("service")}>
        <Bot size={16} aria-hidden /> Create service user
      </Button>
      <Button isDisabled={!givesRoles(own)} onPress={() => onOpen("give")}>
        Give a role
      </Button>
      <Button
        variant="primary"
        isDisabled={!includes(own.role, "owner")}
        onPress={() => onOpen("invite")}
      >
        <UserRoundPlus size={16} aria-hidden /> Invite
      </Button>
    </>
  );
}

type OpenDialogProps = { dialog: DialogKind | undefined; data: PeopleData; onClose: () => void };

function OpenDialog({ dialog, data, onClose }: OpenDialogProps) {
  const { api, me } = useKeySession();
  if (dialog === "invite") return <InviteDialog {...data} onClose={onClose} />;
  if (dialog === "give") return <GiveRoleDialog {...data} onClose={onClose} />;
  if (dialog === "service")
    return (
      <UserDialog api={api} organizationId={me.organization.id} kind="service" onClose={onClose} />
    );
  return null;
}

type Group = { id: string; grants: readonly Grant[] };

/** The roles of groups. The API does not say whether the organization maps groups, so it is absent without a role. */
function GroupsSection({ data }: { data: PeopleData }) {
  const groups = groupsIn(data.grants);
  if (groups.length === 0) return null;
  const columns: readonly Column<Group>[] = [
    { id: "group", header: "Group", cell: ({ id }) => <code className={styles.long}>{id}</code> },
    {
      id: "roles",
      header: "Roles",
      cell: ({ id, grants }) => (
        <RoleList data={data} subject={`the group ${id}`} grants={grants} />
      ),
    },
  ];
  return (
    <Section
      title="Groups"
      lead="Everybody in a group of the identity provider has its roles, from the next sign-in on."
    >
      <Table label="Groups" columns={columns} rows={groups} />
    </Section>
  );
}

function groupsIn(grants: readonly Grant[]): Group[] {
  const ofGroups = grants.filter(({ subject }) => "group" in subject);
  const byName = Map.groupBy(ofGroups, ({ subject }) => ("group" in subject ? subject.group : ""));
  return [...byName].map(([id, ofGroup]) => ({ id, grants: ofGroup }));
}
