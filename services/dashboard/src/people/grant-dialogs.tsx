import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { ApiProblem, fieldMessageOf } from "../api/problem.ts";
import type { CreateGrant, Grant, User } from "../api/schema.d.ts";
import { keepingOwner } from "../operator/operator-queries.ts";
import { includes } from "../session/person.ts";
import { useKeySession } from "../session/session.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Select, TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { grantSentence, type Projects } from "./grant-sentence.ts";
import { grantsRoute, type OwnRoles, usePeopleWrite } from "./people-queries.ts";
import { firstRole, isRoleComplete, RoleFields, scopeOf } from "./role-fields.tsx";

type Place = { own: OwnRoles; projects: Projects };

type GiveRoleProps = Place & {
  users: readonly User[];
  /** The user that is chosen first. */
  userId?: string | undefined;
  onClose: () => void;
};

/** Gives a role to a user or to a group. */
export function GiveRoleDialog({ own, projects, users, userId, onClose }: GiveRoleProps) {
  const [chosen, setChosen] = useState(userId ?? users[0]?.id ?? "");
  const [group, setGroup] = useState("");
  const [isGroup, setIsGroup] = useState(false);
  const [draft, setDraft] = useState(() => firstRole(own));
  const sendOnce = useSendOnce();
  const { mutate, isPending, error } = usePeopleWrite(
    (api, path, body: CreateGrant) =>
      sendOnce(body, (header) => unwrap(api.POST(grantsRoute, { params: { path, header }, body }))),
    () => {
      notify({ text: "The role is given. It counts within a second." });
      onClose();
    },
  );
  const subject = isGroup ? { group: group.trim() } : { user_id: chosen };
  const messages = messagesOf(error);
  return (
    <FormDialog
      title="Give a role"
      action="Give role"
      onClose={onClose}
      onSubmit={() => mutate({ subject, role: draft.role, scope: scopeOf(draft, own) })}
      isPending={isPending}
      isComplete={isRoleComplete(draft) && (isGroup ? group.trim() : chosen) !== ""}
      error={(messages.role ?? messages.group) ? undefined : error}
    >
      {userId === undefined && includes(own.role, "owner") && (
        <Select<"user" | "group">
          label="For"
          value={isGroup ? "group" : "user"}
          onChange={(kind) => setIsGroup(kind === "group")}
          options={[
            { value: "user", label: "A user" },
            { value: "group", label: "A group", note: "of the identity provider" },
          ]}
        />
      )}
      {isGroup ? (
        <TextField
          label="Group"
          value={group}
          onChange={setGroup}
          isRequired
          isCode
          error={messages.group}
          description="The name or id that the identity provider sends. Its members need no invitation."
        />
      ) : (
        <Select
          label="User"
          value={chosen}
          onChange={setChosen}
          options={users.map(({ id, email, name }) => ({
            value: id,
            label: email,
            ...(name !== null && { note: name }),
          }))}
        />
      )}
      <RoleFields
        {...{ own, projects, subject, draft }}
        onChange={setDraft}
        error={messages.role}
      />
    </FormDialog>
  );
}

/** Returns the messages of the API that belong to a field. */
function messagesOf(error: unknown): { role?: string; group?: string } {
  if (error instanceof ApiProblem && error.status === 409) return { role: error.message };
  if (fieldMessageOf(error)?.path.join("/") === "subject/group")
    return {
      group:
        "This organization does not map groups. The operator adds it to OIDC_GROUPS_ORGANIZATIONS.",
    };
  return {};
}

type RevokeProps = { grant: Grant; subject: string; projects: Projects; onClose: () => void };

/** Withdraws a role, after a confirmation. */
export function RevokeRoleDialog({ grant, subject, projects, onClose }: RevokeProps) {
  const { me } = useKeySession();
  const { mutate, isPending, error } = usePeopleWrite(
    (api, path, grantId: string) =>
      keepingOwner(
        unwrap(api.DELETE(`${grantsRoute}/{grantId}`, { params: { path: { ...path, grantId } } })),
      ),
    () => {
      notify({ text: `${subject} no longer has the role ${grant.role} there.` });
      onClose();
    },
  );
  return (
    <ConfirmDialog
      title={`Revoke the role ${grant.role} of ${subject}?`}
      action="Revoke role"
      onClose={onClose}
      onConfirm={() => mutate(grant.id)}
      isPending={isPending}
      error={error}
    >
      <p>{grantSentence(grant, projects)}.</p>
      {"user_id" in grant.subject && grant.subject.user_id === me.user.id && (
        <Warning>This is your own role. You may be unable to give it back to yourself.</Warning>
      )}
      <p>
        The role ends within a second, also on open pages and for server keys of the user. Other
        roles stay. Schedules that were set with this role are still applied.
      </p>
    </ConfirmDialog>
  );
}
