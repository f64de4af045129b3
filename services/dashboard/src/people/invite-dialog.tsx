import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { ApiProblem } from "../api/problem.ts";
import type { CreateInvitation, InviteAnswer } from "../api/schema.d.ts";
import { CodeBlock } from "../ui/code-block.tsx";
import { localTime } from "../ui/dates.ts";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import { SecretDialog } from "../ui/secret-dialog.tsx";
import type { Projects } from "./grant-sentence.ts";
import { invitationsRoute, type OwnRoles, usePeopleWrite } from "./people-queries.ts";
import { firstRole, isRoleComplete, RoleFields, scopeOf } from "./role-fields.tsx";

type Props = { own: OwnRoles; projects: Projects; onClose: () => void };

/** Invites a person, then shows the link once. */
export function InviteDialog({ onClose, ...place }: Props) {
  const [invited, setInvited] = useState<InviteAnswer>();
  if (invited !== undefined) return <InvitationLink invited={invited} onClose={onClose} />;
  return <InviteForm {...place} onInvited={setInvited} onClose={onClose} />;
}

function InviteForm({
  own,
  projects,
  onInvited,
  onClose,
}: Props & { onInvited: (invited: InviteAnswer) => void }) {
  const [email, setEmail] = useState("");
  const [name, setName] = useState("");
  const [draft, setDraft] = useState(() => firstRole(own));
  const { mutate, isPending, error } = useInvite(onInvited);
  const isTaken = error instanceof ApiProblem && error.status === 409;
  const named = name.trim() === "" ? {} : { name: name.trim() };
  return (
    <FormDialog
      title="Invite a person"
      action="Create invitation"
      onClose={onClose}
      onSubmit={() =>
        mutate({ email: email.trim(), ...named, role: draft.role, scope: scopeOf(draft, own) })
      }
      isPending={isPending}
      isComplete={email.trim() !== "" && isRoleComplete(draft)}
      error={isTaken ? undefined : error}
    >
      <TextField
        label="E-mail"
        type="email"
        value={email}
        onChange={setEmail}
        autoFocus
        isRequired
        autoComplete="off"
        error={isTaken ? error.message : undefined}
        description="Halyard sends no mail. You get a link, which you send yourself."
      />
      <TextField label="Name" value={name} onChange={setName} autoComplete="off" />
      <RoleFields {...{ own, projects, draft }} subject={newUser} onChange={setDraft} />
    </FormDialog>
  );
}

/** The invited user has no id yet. */
const newUser = { user_id: "" };

/**
 * Sends an invitation. The result of the mutation is empty, so that no cache contains the link. A repetition after a lost
 * response replaces the link.
 */
const useInvite = (onInvited: (invited: InviteAnswer) => void) =>
  usePeopleWrite(
    async (api, path, body: CreateInvitation): Promise<void> =>
      onInvited(await unwrap(api.POST(invitationsRoute, { params: { path }, body }))),
    () => undefined,
  );

function InvitationLink({ invited, onClose }: { invited: InviteAnswer; onClose: () => void }) {
  return (
    <SecretDialog title={`The invitation of ${invited.user.email}`} kind="link" onClose={onClose}>
      <Warning>
        Copy the link now, and send it to {invited.user.email} yourself. It is shown only once, and
        Halyard sends no mail.
      </Warning>
      <CodeBlock title="Link of the invitation" code={invited.url} wraps />
      <p>
        The link works once, within 24 hours: until {localTime(new Date(invited.expires_at))}.
        Everybody with the link can become this user, so send it over a safe channel.
      </p>
    </SecretDialog>
  );
}
