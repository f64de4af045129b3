import { useEffect, useState } from "react";
import { createApi, unwrap } from "../api/client.ts";
import { Button } from "../ui/button.tsx";
import { Dialog, DialogActions, KeepOpen } from "../ui/dialog.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Loading } from "../ui/panels.tsx";
import { authenticate, goToProvider, readMethods } from "./auth-requests.ts";
import { useConfirmation } from "./confirmation.ts";

/** Asks for a confirmation of the sign-in when a request needs one. */
export function ConfirmationDialog() {
  const answer = useConfirmation();
  return answer === undefined ? null : <Question onAnswer={answer} />;
}

type Ways = { passkey: boolean; provider: boolean };
type Answer = (isConfirmed: boolean) => void;

function Question({ onAnswer }: { onAnswer: Answer }) {
  const [ways, setWays] = useState<Ways>();
  const [error, setError] = useState<unknown>();
  useEffect(() => {
    readWays().then(setWays, setError);
  }, []);
  return (
    <Dialog title="Confirm that it is you" onClose={() => onAnswer(false)}>
      <p>Your last sign-in was too long ago for this step.</p>
      {error !== undefined && <ErrorPanel error={error} />}
      {ways === undefined && error === undefined && <Loading label="Loading the ways to confirm" />}
      {ways !== undefined && <WaysToConfirm ways={ways} onAnswer={onAnswer} onError={setError} />}
    </Dialog>
  );
}

type WaysProps = { ways: Ways; onAnswer: Answer; onError: (error: unknown) => void };

function WaysToConfirm({ ways: { passkey, provider }, onAnswer, onError }: WaysProps) {
  const [isPending, setPending] = useState(false);
  async function confirm(): Promise<void> {
    setPending(true);
    onError(undefined);
    try {
      await authenticate("confirm");
      onAnswer(true);
    } catch (failure) {
      onError(failure);
      setPending(false);
    }
  }
  if (!passkey && !provider) return <NewSignIn onAnswer={onAnswer} />;
  return (
    <>
      <KeepOpen isPending={isPending} />
      {provider && (
        <p>Your organization leads you back to this page. What is not saved on it is lost.</p>
      )}
      <DialogActions>
        <Button onPress={() => onAnswer(false)} isDisabled={isPending}>
          Cancel
        </Button>
        {provider && (
          <Button
            variant={passkey ? "secondary" : "primary"}
            onPress={() => goToProvider({ returnTo: currentPath(), confirms: true })}
          >
            Confirm with your organization
          </Button>
        )}
        {passkey && (
          <Button variant="primary" autoFocus isPending={isPending} onPress={() => void confirm()}>
            Confirm with your passkey
          </Button>
        )}
      </DialogActions>
    </>
  );
}

/** A person without a passkey and an account at the provider signs in again, in another tab. The form stays in this one. */
function NewSignIn({ onAnswer }: { onAnswer: Answer }) {
  return (
    <>
      <p>
        You have neither a passkey nor an account of an identity provider here. Ask the operator for
        another sign-in link, and open it in this browser. Then continue here.
      </p>
      <DialogActions>
        <Button onPress={() => onAnswer(false)}>Cancel</Button>
        <Button variant="primary" onPress={() => onAnswer(true)}>
          I have signed in again
        </Button>
      </DialogActions>
    </>
  );
}

const currentPath = () => window.location.pathname + window.location.search;

/** Returns the ways in which the person of the session can confirm. */
async function readWays(): Promise<Ways> {
  const api = createApi({}, { onRejected: () => undefined });
  const [methods, session, { passkeys }] = await Promise.all([
    readMethods(),
    unwrap(api.GET("/api/v1/session")),
    unwrap(api.GET("/api/v1/passkeys")),
  ]);
  return {
    passkey: methods?.passkey === true && passkeys.length > 0,
    provider: methods?.oidc === true && session.signed_in_by === "oidc",
  };
}
