import { useMutation } from "@tanstack/react-query";
import { useState } from "react";
import { unwrap } from "../api/client.ts";
import { useSendOnce } from "../api/idempotency.ts";
import { isUnconfirmed } from "../api/problem.ts";
import type { ApiKey, IssuedApiKey } from "../api/schema.d.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { localTime } from "../ui/dates.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Select } from "../ui/fields.tsx";
import { FormDialog } from "../ui/form-dialog.tsx";
import { useAskedClose, useUnsaved } from "../ui/leave-guard.ts";
import { notify } from "../ui/toasts.tsx";
import { type KeyPlace, keyRoute, pathOf, useRefreshKeys } from "./key-queries.ts";
import { overlapsFor } from "./key-state.ts";
import { NewKeyDialog } from "./new-key.tsx";

type Props = { place: KeyPlace; subject: ApiKey; onClose: () => void };

/** The new key, and the end of the old one. */
type Rotated = { issued: IssuedApiKey; oldEnds: Date };

/** Replaces a key. For the key in use, the session continues with the new key. */
export function RotateKeyDialog({ place, subject, onClose }: Props) {
  const isInUse = subject.id === place.own?.id;
  const [rotated, setRotated] = useState<Rotated>();
  if (rotated !== undefined)
    return isInUse ? (
      <ContinueWithNewKey {...rotated} onClose={onClose} />
    ) : (
      <NewKeyDialog issued={rotated.issued} note={endOf(rotated.oldEnds)} onClose={onClose} />
    );
  return <RotateForm {...{ place, subject, isInUse, onClose }} onRotated={setRotated} />;
}

const endOf = (oldEnds: Date): string =>
  oldEnds.getTime() <= Date.now()
    ? "The old key no longer works."
    : `The old key works until ${localTime(oldEnds)}. Replace it everywhere before then.`;

/** Rotates a key. The result of the mutation is empty, so that no cache contains the key. */
function useRotateKey(place: KeyPlace, subject: ApiKey, onRotated: (rotated: Rotated) => void) {
  const refresh = useRefreshKeys();
  const sendOnce = useSendOnce();
  const path = { ...pathOf(place), keyId: subject.id };
  return useMutation({
    mutationFn: async (seconds: number): Promise<void> => {
      const body = { overlap_seconds: seconds };
      const issued = await sendOnce([path, body], (header) =>
        unwrap(place.api.POST(`${keyRoute}/rotate`, { params: { path, header }, body })),
      );
      const end = Date.parse(issued.created_at) + seconds * 1000;
      const ownEnd = subject.expires_at === null ? end : Date.parse(subject.expires_at);
      onRotated({ issued, oldEnds: new Date(Math.min(end, ownEnd)) });
    },
    onSuccess: refresh,
  });
}

function RotateForm({
  place,
  subject,
  isInUse,
  onClose,
  onRotated,
}: Props & { isInUse: boolean; onRotated: (rotated: Rotated) => void }) {
  const offered = overlapsFor(isInUse);
  const [overlap, setOverlap] = useState("3600");
  const { mutate, isPending, error } = useRotateKey(place, subject, onRotated);
  useUnsaved(isPending || isUnconfirmed(error), "secret");
  const askAndClose = useAskedClose(onClose);
  return (
    <FormDialog
      title={`Rotate ${subject.name}`}
      action="Rotate key"
      onClose={askAndClose}
      onSubmit={() => mutate(Number(overlap))}
      isPending={isPending}
      isComplete
      error={error}
    >
      <p>
        A new key replaces this one. It has the same permissions
        {subject.expires_at === null ? "" : " and the same expiry"}. Both work during the overlap,
        so that your applications can change to the new key without an interruption.
      </p>
      {isInUse && (
        <p>
          You use this key now. Afterwards you continue with the new key; without it, you would be
          signed out when the overlap ends.
        </p>
      )}
      <Select
        label="Overlap"
        value={overlap}
        onChange={setOverlap}
        options={offered.map(({ seconds, label }) => ({ value: String(seconds), label }))}
        description={
          isInUse
            ? "If the key has leaked, choose 10 minutes, then revoke the old key with the new one."
            : "If the key has leaked, revoke it and issue another one instead."
        }
      />
    </FormDialog>
  );
}

/** Shows the successor of the key in use, and changes the session to it. */
function ContinueWithNewKey({ issued, oldEnds, onClose }: Rotated & { onClose: () => void }) {
  const { token } = useKeySession();
  const { signIn, signOut } = useSessions();
  const { mutate, isPending, error } = useMutation({
    mutationFn: async () => {
      if (!(await signIn(issued.key))) return;
      await signOut(token);
      notify({ text: `You are signed in with the new key ${issued.name}.` });
    },
  });
  return (
    <NewKeyDialog
      issued={issued}
      onClose={onClose}
      note={
        <>
          {endOf(oldEnds)} Continue with the new key here, or you are signed out then.
          {error !== null && <ErrorPanel error={error} />}
        </>
      }
      action={(isCopied) => (
        <Button
          variant="primary"
          isDisabled={!isCopied}
          isPending={isPending}
          onPress={() => mutate()}
        >
          Continue with the new key
        </Button>
      )}
    />
  );
}
