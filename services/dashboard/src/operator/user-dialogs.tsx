import { type ReactNode, useState } from "react";
import { type Api, unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { ApiProblem } from "../api/problem.ts";
import type { User, UserKind } from "../api/schema.d.ts";
import { Checkbox, TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { DeletionDialog } from "./deletion-dialog.tsx";
import styles from "./operator.module.css";
import { keepingOwner, usersRoute, useWrite } from "./operator-queries.ts";

type UserDialogProps = {
  api: Api;
  organizationId: string;
  user?: User;
  /** The kind of a new user. */
  kind?: UserKind;
  onClose: () => void;
};

/** Creates a user, or changes the given one. */
export function UserDialog(props: UserDialogProps) {
  const { user, kind = user?.kind ?? "person", onClose } = props;
  const noun = kind === "service" ? "service user" : "user";
  const [email, setEmail] = useState(user?.email ?? "");
  const [name, setName] = useState(user?.name ?? "");
  const { mutate, isPending, error } = useSaveUser({ ...props, kind });
  const isTaken = error instanceof ApiProblem && error.status === 409;
  return (
    <FormDialog
      title={user === undefined ? `Create a ${noun}` : `Edit the ${noun}`}
      action={user === undefined ? `Create ${noun}` : "Save"}
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
        description={
          kind === "service"
            ? "It names the program in the audit log, such as ci@example.com, and needs no mailbox."
            : "The audit log shows it beside each change of this user."
        }
      />
      <TextField label="Name" value={name} onChange={setName} autoComplete="off" />
    </FormDialog>
  );
}

/** Sends only the fields that differ, so that another person's change of the other field stays. */
function useSaveUser({
  api,
  organizationId,
  user,
  kind,
  onClose,
}: UserDialogProps & { kind: UserKind }) {
  const sendOnce = useSendOnce();
  return useWrite(({ email, name }: { email: string; name: string }) => {
    const named = name === "" || name === user?.name ? {} : { name };
    if (user === undefined)
      return sendOnce({ email, name, kind }, (header) =>
        unwrap(
          api.POST(usersRoute, {
            params: { path: { organizationId }, header },
            body: { email, ...named, ...(kind === "service" && { kind }) },
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

type DeleteUserProps = {
  api: Api;
  user: User;
  onClose: () => void;
  /** Further consequences, such as the pending schedules. */
  children?: ReactNode;
};

/** Deletes a user after the e-mail address is typed, and optionally erases it from the audit log. */
export function DeleteUserDialog({ api, user, onClose, children }: DeleteUserProps) {
  const [erase, setErase] = useState(false);
  const path = { organizationId: user.organization_id, userId: user.id };
  const query = { confirm: user.id, ...(erase && { erase }) };
  return (
    <DeletionDialog
      kind="user"
      name={user.email}
      typed="Type the e-mail address to confirm"
      ends={endsWith(user)}
      send={() =>
        keepingOwner(unwrap(api.DELETE(`${usersRoute}/{userId}`, { params: { path, query } })))
      }
      onClose={onClose}
    >
      {children}
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

/** Returns what ends with a user. */
const endsWith = ({ kind }: User): string[] => [
  "All API keys of this user are revoked, also those that applications use.",
  ...(kind === "person"
    ? ["Access to this organization ends within a second, also on pages that are open."]
    : []),
  "All roles of this user end.",
  "Schedules of this user are still applied.",
];
