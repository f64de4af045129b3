import { useKeySession } from "../session/session.tsx";
import { usePermission } from "../session/use-permission.ts";
import { ButtonLink } from "../ui/button.tsx";
import { Page } from "../ui/page.tsx";
import { IssueKeyButton } from "./issue-key-dialog.tsx";
import { KeyList } from "./key-list.tsx";
import { useEmails, useOwnPlace } from "./key-queries.ts";

/** The API keys of the chosen environment. */
export function KeysPage() {
  const place = useOwnPlace();
  const { environment } = place;
  const session = useKeySession();
  const { me } = session;
  const { reason, isOffered } = usePermission("issue_keys", environment);
  const emails = useEmails();
  const emailOf = (id: string) =>
    id === me.user.id ? "You" : (emails.get(id) ?? "Another person");
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
        <>
          <ButtonLink to="/connect">Connect an application</ButtonLink>
          {isOffered && <IssueKeyButton place={place} variant="primary" whyNot={reason} />}
        </>
      }
    >
      <KeyList place={place} emailOf={emailOf} />
    </Page>
  );
}
