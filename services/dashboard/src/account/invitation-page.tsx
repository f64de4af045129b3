import { useEffect, useState } from "react";
import { createApi, unwrap } from "../api/client.ts";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import {
  authenticate,
  type ReadInvitation,
  readInvitation,
  registerPasskey,
} from "../session/auth-requests.ts";
import { confirmSignIn } from "../session/confirmation.ts";
import { keepInvitation } from "../session/one-time-code.ts";
import { readSignedIn, type SignedIn, signOutPerson } from "../session/person.ts";
import { enter } from "../session/receive-person.ts";
import { SignInFrame } from "../session/sign-in-frame.tsx";
import { problemIn } from "../session/sign-in-problem.ts";
import { ProviderButtons } from "../session/ways-to-sign-in.tsx";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Loading, Warning } from "../ui/panels.tsx";
import { browserName } from "./browser-name.ts";

type Facts = { invitation: ReadInvitation; signedIn: SignedIn | undefined };

/**
 * Accepts an invitation: with a new passkey, or as the signed-in person. Loading the page does not use up the code, which
 * is only in the memory of the page.
 */
export function InvitationPage(opened: { code: string; isReturn: boolean }) {
  const { code } = opened;
  const [facts, setFacts] = useState<Facts>();
  const [error, setError] = useState<unknown>();
  const [isPending, setPending] = useState(false);
  const problem = problemIn(window.location.search);

  async function run(step: () => Promise<unknown>): Promise<void> {
    setPending(true);
    setError(undefined);
    try {
      await step();
    } catch (failure) {
      setError(failure);
    } finally {
      setPending(false);
    }
  }
  const read = async () => setFacts(await readFacts(opened));
  // biome-ignore lint/correctness/useExhaustiveDependencies: the page has one code.
  useEffect(() => void run(read), []);

  return (
    <SignInFrame title={facts === undefined ? "Invitation" : titleOf(facts)}>
      {problem !== undefined && error === undefined && <Warning>{problem}</Warning>}
      {error !== undefined && <ErrorPanel error={error} />}
      {facts === undefined ? (
        error === undefined && <Loading label="Loading the invitation" />
      ) : (
        <Choices code={code} facts={facts} isPending={isPending} run={run} onSignedIn={read} />
      )}
      {facts === undefined && error !== undefined && (
        <Button onPress={() => window.location.replace("/")}>Go to the sign-in page</Button>
      )}
    </SignInFrame>
  );
}

const titleOf = ({ invitation }: Facts) => `Join ${invitation.organization.name}`;

type ChoicesProps = {
  code: string;
  facts: Facts;
  isPending: boolean;
  run: (step: () => Promise<unknown>) => Promise<void>;
  onSignedIn: () => Promise<void>;
};

function Choices({ facts: { invitation, signedIn }, ...props }: ChoicesProps) {
  return (
    <>
      <p>
        You are invited to <bdi>{invitation.organization.name}</bdi> as{" "}
        <bdi>{invitation.email}</bdi>. The invitation works once.
      </p>
      {signedIn === undefined ? (
        <NewPerson invitation={invitation} {...props} />
      ) : (
        <SignedInPerson invitation={invitation} signedIn={signedIn} {...props} />
      )}
    </>
  );
}

type NewPersonProps = Omit<ChoicesProps, "facts"> & { invitation: ReadInvitation };

/** A new person registers a passkey. Others sign in first, and then join. */
function NewPerson({ code, invitation, isPending, run, onSignedIn }: NewPersonProps) {
  const { methods, organization } = invitation;
  const register = async () => {
    const name = browserName(navigator.userAgent);
    await registerPasskey({ name, invitation: code }).catch(explainCode);
    await enter("/", organization.id);
  };
  const signIn = async () => {
    await authenticate("sign_in");
    await onSignedIn();
  };
  return (
    <>
      {methods.oidc && (
        <ProviderButtons returnTo={() => keepInvitation(code)} isDisabled={isPending} />
      )}
      {methods.passkey && (
        <>
          <Button
            variant={methods.oidc ? "secondary" : "primary"}
            isPending={isPending}
            onPress={() => void run(register)}
          >
            Create a passkey and join
          </Button>
          <p>
            A passkey signs you in with this device's fingerprint, face or PIN. There is no
            password.
          </p>
          <Button variant="quiet" isDisabled={isPending} onPress={() => void run(signIn)}>
            I have a passkey here: sign in first
          </Button>
        </>
      )}
      {!methods.oidc && !methods.passkey && (
        <Warning>
          Passkeys and identity providers are switched off. Ask the operator for a sign-in link,
          then open the invitation again.
        </Warning>
      )}
    </>
  );
}

type SignedInPersonProps = NewPersonProps & { signedIn: SignedIn };

function SignedInPerson({ code, invitation, signedIn, isPending, run }: SignedInPersonProps) {
  const join = async () => {
    const api = createApi({}, { onRejected: () => undefined, confirm: confirmSignIn });
    const accepted = api.POST("/api/v1/invitations/accept", { body: { code } });
    const { organization_id } = await unwrap(accepted).catch(explainCode);
    await enter("/", organization_id);
  };
  const signOut = async () => {
    keepInvitation(code);
    window.location.assign(await signOutPerson());
  };
  return (
    <>
      <p>
        You are signed in as <bdi>{signedIn.person.email}</bdi>.
      </p>
      <Button variant="primary" isPending={isPending} onPress={() => void run(join)}>
        Join {invitation.organization.name}
      </Button>
      <Button variant="quiet" isDisabled={isPending} onPress={() => void run(signOut)}>
        Sign out, and use another account
      </Button>
    </>
  );
}

/** Reads the invitation and the session. */
async function readFacts(opened: { code: string; isReturn: boolean }): Promise<Facts | undefined> {
  const signedIn = await readSignedIn();
  try {
    return { invitation: await readInvitation(opened.code), signedIn };
  } catch (error) {
    // A sign-in at the provider with the invited address accepts the invitation by itself.
    if (opened.isReturn && signedIn !== undefined && isUsed(error)) {
      await enter("/");
      return undefined;
    }
    return explainCode(error);
  }
}

const isUsed = (error: unknown) => error instanceof ApiProblem && error.status === 404;

function explainCode(error: unknown): never {
  if (!isUsed(error)) throw error;
  throw new AdvisedError(
    "This invitation was used already, was withdrawn, or is older than 24 hours.",
    "If you have accepted it, sign in. Otherwise ask for another invitation.",
  );
}
