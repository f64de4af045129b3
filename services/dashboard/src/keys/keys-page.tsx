import { useEnvironment } from "../session/environment.tsx";
import { permissionsOf } from "../session/permissions.ts";
import { useKeySession } from "../session/session.tsx";
import { Page } from "../ui/page.tsx";
import { IssueKeyButton } from "./issue-key-dialog.tsx";
import { KeyList } from "./key-list.tsx";
import { useEmails } from "./key-queries.ts";

/** The API keys of the chosen environment. */
export function KeysPage() {
  const { environment } = useEnvironment();
  const session = useKeySession();
  const { api, me } = session;
  const { data: emails } = useEmails();
  const place = { api, projectId: me.project.id, environment, users: [me.user], own: me.key };
  const emailOf = (id: string) =>
    id === me.user.id ? "You" : (emails?.get(id) ?? "Another person");
  return (
    <Page
      title="API keys"
      lead={
        <>
          Keys of <bdi>{environment.name}</bdi>. Each person uses a server key of their own: the
          history records every change with the user of the key that made it, and revoking a key
          affects only one person.
        </>
      }
      actions={
        permissionsOf(session).mayIssueKeys(environment.id) && (
          <IssueKeyButton place={place} variant="primary" />
        )
      }
    >
      <KeyList place={place} emailOf={emailOf} />
    </Page>
  );
}
