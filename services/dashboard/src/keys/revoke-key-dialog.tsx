import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import type { ApiKey } from "../api/schema.d.ts";
import { useSessions } from "../session/session.tsx";
import { ConfirmDialog } from "../ui/dialog.tsx";
import { Checkbox } from "../ui/fields.tsx";
import { Warning } from "../ui/panels.tsx";
import { notify } from "../ui/toasts.tsx";
import { type KeyPlace, keyRoute, pathOf, useRefreshKeys } from "./key-queries.ts";

type Props = { place: KeyPlace; subject: ApiKey; onClose: () => void };

/** Revokes a key, after its name was typed. Revoking the key in use signs out. */
export function RevokeKeyDialog({ place, subject, onClose }: Props) {
  const { current, signOut } = useSessions();
  const refresh = useRefreshKeys();
  const [withIssued, setWithIssued] = useState(false);
  const isInUse = subject.id === place.own?.id;
  const path = { ...pathOf(place), keyId: subject.id };
  const { mutate, isPending, error } = useMutation({
    mutationFn: () =>
      unwrap(
        place.api.DELETE(keyRoute, {
          params: { path, ...(withIssued && { query: { issued: true } }) },
        }),
      ),
    onSuccess: async () => {
      notify({ text: `${subject.name} is revoked.` });
      if (isInUse && current !== undefined) return signOut(current.token);
      await refresh();
      onClose();
    },
  });
  return (
    <ConfirmDialog
      title={`Revoke ${subject.name}?`}
      onClose={onClose}
      action={isInUse ? "Revoke key and sign out" : "Revoke key"}
      typed={{ label: "Type the name of the key", text: subject.name }}
      onConfirm={mutate}
      isPending={isPending}
      error={error}
    >
      <p>
        Within a second, every request with this key is rejected and its streams are closed. This
        cannot be undone.
      </p>
      {isInUse && <Warning>You use this key now. Revoking it signs you out.</Warning>}
      <Checkbox isSelected={withIssued} onChange={setWithIssued}>
        Also revoke every key issued by it
      </Checkbox>
    </ConfirmDialog>
  );
}
