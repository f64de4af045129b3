import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { ApiProblem } from "../api/problem.ts";
import type { User } from "../api/schema.d.ts";
import { useOperatorSession } from "../session/session.tsx";
import { Checkbox, TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import styles from "./operator.module.css";
import { usersRoute, useWrite } from "./operator-queries.ts";

type UserDialogProps = { organizationId: string; user?: User; onClose: () => void };

/** Creates a user, or changes the given one. */
export function UserDialog({ organizationId, user, onClose }: UserDialogProps) {
  const [email, setEmail] = useState(user?.email ?? "");
  const [name, setName] = useState(user?.name ?? "");
  const { mutate, isPending, error } = useSaveUser(organizationId, user, onClose);
  const isTaken = error instanceof ApiProblem && error.status === 409;
  return (
    <FormDialog
      title={user === undefined ? "Create a user" : "Edit the user"}
      action={user === undefined ? "Create user" : "Save"}
      onClose={onClose}
      onSubmit={() => mutate({ email: email.trim(), name: name.trim() })}
      isPending={isPending}
      // The API keeps a name that is not given, so it cannot be removed.
      isComplete={email.trim() !== "" && (!user?.name || name.trim() !== "")}
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
        error={isTaken ? "Another user of the organization has this address." : undefined}
        description="The audit log shows it beside each change of this user."
      />
      <TextField label="Name" value={name} onChange={setName} autoComplete="off" />
    </FormDialog>
  );
}

/** Sends only the fields that differ, so that another person's change of the other field stays. */
function useSaveUser(organizationId: string, user: User | undefined, onClose: () => void) {
  const { api } = useOperatorSession();
  const sendOnce = useSendOnce();
  return useWrite(({ email, name }: { email: string; name: string }) => {
    const named = name === "" || name === user?.name ? {} : { name };
    if (user === undefined)
      return sendOnce({ email, name }, (header) =>
        unwrap(
          api.POST(usersRoute, {
            params: { path: { organizationId }, header },
            body: { email, ...named },
          }),
        ),
      );
    return unwrap(
      api.PATCH(`${usersRoute}/{userId}`, {
        params: { path: { organizationId, userId: user.id } },
        body: { ...(email !== user.email && { email }), ...named },
      }),
    );
  }, onClose);
}

/** Deletes a user after the e-mail address is typed, and optionally erases it from the audit log. */
export function DeleteUserDialog({ user, onClose }: { user: User; onClose: () => void }) {
  const { api } = useOperatorSession();
  const [erase, setErase] = useState(false);
  const path = { organizationId: user.organization_id, userId: user.id };
  return (
    <DeletionDialog
      kind="user"
      name={user.email}
      typed="Type the e-mail address to confirm"
      ends={[
        "All API keys of this user are revoked, also those that applications use.",
        "Schedules of this user are still applied.",
      ]}
      send={() =>
        unwrap(
          api.DELETE(`${usersRoute}/{userId}`, {
            params: { path, query: { confirm: user.id, ...(erase && { erase }) } },
          }),
        )
      }
      onClose={onClose}
    >
      <div>
        <Checkbox isSelected={erase} onChange={setErase}>
          Also erase the name and the address from the audit log
        </Checkbox>
        <p className={styles.note}>
          Without it, the audit log and the history still show who made each change. With it, they
          show only the id of the user.
        </p>
      </div>
    </DeletionDialog>
  );
}
