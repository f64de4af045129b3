import { useMutation } from "@tanstack/react-query";
import { Plus } from "lucide-react";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { registerPasskey } from "../session/auth-requests.ts";
import { useKeySession } from "../session/session.tsx";
import { useSignInMethods } from "../session/ways-to-sign-in.tsx";
import { Button } from "../ui/button.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { TextField } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { Card } from "../ui/panels.tsx";
import { QueryView } from "../ui/query-view.tsx";
import { actionsColumn, type Column, Table } from "../ui/table.tsx";
import { Time } from "../ui/time.tsx";
import { notify } from "../ui/toasts.tsx";
import styles from "./account.module.css";
import { type OwnPasskey, useOwnPasskeys, useRefreshOwn } from "./account-queries.ts";
import { browserName } from "./browser-name.ts";

/** The person's passkeys. Absent where passkeys are switched off, because none would sign in. */
export function PasskeysCard() {
  const methods = useSignInMethods();
  const query = useOwnPasskeys();
  const [isAdding, setAdding] = useState(false);
  if (methods?.passkey !== true) return null;
  return (
    <Card
      title="Passkeys"
      actions={
        <Button size="small" onPress={() => setAdding(true)}>
          <Plus size={16} aria-hidden /> Add a passkey
        </Button>
      }
    >
      <QueryView query={query} label="Loading the passkeys">
        {(passkeys) =>
          passkeys.length === 0 ? (
            <p className={styles.note}>
              You have none. A passkey signs you in with a fingerprint, a face or a PIN.
            </p>
          ) : (
            <PasskeyTable passkeys={passkeys} />
          )
        }
      </QueryView>
      {isAdding && <AddDialog onClose={() => setAdding(false)} />}
    </Card>
  );
}

function PasskeyTable({ passkeys }: { passkeys: readonly OwnPasskey[] }) {
  const [removed, setRemoved] = useState<OwnPasskey>();
  const columns: readonly Column<OwnPasskey>[] = [
    { id: "name", header: "Passkey", cell: ({ name }) => <bdi>{name}</bdi> },
    { id: "added", header: "Added", cell: ({ created_at }) => <Time at={created_at} /> },
    {
      id: "used",
      header: "Last used",
      cell: ({ last_used_at: at }) =>
        at === null ? <span className={styles.note}>Never</span> : <Time at={at} />,
    },
    actionsColumn((passkey) => (
      <Button
        size="small"
        aria-label={`Remove ${passkey.name}`}
        onPress={() => setRemoved(passkey)}
      >
        Remove
      </Button>
    )),
  ];
  return (
    <>
      <Table label="Passkeys" columns={columns} rows={passkeys} />
      {removed !== undefined && (
        <RemoveDialog
          passkey={removed}
          isLast={passkeys.length === 1}
          onClose={() => setRemoved(undefined)}
        />
      )}
    </>
  );
}

function AddDialog({ onClose }: { onClose: () => void }) {
  const [name, setName] = useState(() => browserName(navigator.userAgent));
  const refresh = useRefreshOwn();
  const { mutate, isPending, error } = useMutation({
    mutationFn: () => registerPasskey({ name: name.trim() }),
    onSuccess: async () => {
      await refresh();
      notify({ text: `The passkey ${name.trim()} is added.` });
      onClose();
    },
  });
  return (
    <FormDialog
      title="Add a passkey"
      action="Add passkey"
      onClose={onClose}
      onSubmit={mutate}
      isPending={isPending}
      isComplete={name.trim() !== ""}
      error={error}
    >
      <TextField
        label="Name"
        value={name}
        onChange={setName}
        description="Where the passkey is kept, such as “Laptop” or “Security key”."
        autoFocus
        isRequired
      />
    </FormDialog>
  );
}

type RemoveDialogProps = { passkey: OwnPasskey; isLast: boolean; onClose: () => void };

function RemoveDialog({ passkey: { id, name }, isLast, onClose }: RemoveDialogProps) {
  const { api } = useKeySession();
  const refresh = useRefreshOwn();
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      unwrap(api.DELETE("/api/v1/passkeys/{passkeyId}", { params: { path: { passkeyId: id } } })),
    onSuccess: async () => {
      await refresh();
      notify({ text: `The passkey ${name} is removed.` });
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Remove ${name}?`}
      action="Remove passkey"
      onClose={onClose}
      onConfirm={mutate}
      isPending={isPending}
      error={error}
    >
      <p>
        It no longer signs in. Your sessions stay. Your device keeps an entry of it, which you can
        delete there.
      </p>
      {isLast && <p>It is your last passkey. Make sure that you can sign in another way.</p>}
    </ConfirmDialog>
  );
}
