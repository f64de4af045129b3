import { useMutation } from "@tanstack/react-query";
import type { SignInMethod } from "../api/schema.d.ts";
import { useEndsSoon } from "../keys/key-expiry.tsx";
import { authenticate, openProvider } from "../session/auth-requests.ts";
import { awaitSignedIn } from "../session/receive-person.ts";
import { useKeySession, useSessions } from "../session/session.tsx";
import { Button } from "../ui/button.tsx";
import { clockText } from "../ui/dates.ts";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Warning } from "../ui/panels.tsx";

/** Signing in again does not leave the page, so that nothing on it is lost. */
type Again = { advice: string; signIn?: () => Promise<unknown> };

const waysAgain: Readonly<Record<SignInMethod, Again>> = {
  oidc: {
    advice: "Sign in again in another tab, then return to this one.",
    signIn: async () => openProvider("/you"),
  },
  passkey: {
    advice: "Sign in again before then.",
    signIn: async () => {
      await authenticate("sign_in");
      await awaitSignedIn();
    },
  },
  operator: {
    advice:
      "Ask the operator for another sign-in link, open it in another tab of this browser, then return to this one.",
  },
};

/** Warns before the session of a signed-in person ends. */
export function SignInExpiry() {
  const { signIn } = useKeySession().me;
  const isEnding = useEndsSoon(signIn?.endsAt ?? null);
  const { readRolesAgain } = useSessions();
  const again = useMutation({
    mutationFn: async () => signIn && waysAgain[signIn.by].signIn?.(),
    onSuccess: readRolesAgain,
  });
  if (signIn === undefined || !isEnding) return null;
  const way = waysAgain[signIn.by];
  return (
    <>
      <Warning
        action={
          way.signIn !== undefined && (
            <Button size="small" isPending={again.isPending} onPress={() => again.mutate()}>
              Sign in again
            </Button>
          )
        }
      >
        Your sign-in ends at {clockText(new Date(signIn.endsAt))}. {way.advice} This page keeps what
        you entered.
      </Warning>
      {again.error !== null && <ErrorPanel error={again.error} />}
    </>
  );
}
