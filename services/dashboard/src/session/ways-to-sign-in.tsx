import { useEffect, useState } from "react";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Warning } from "../ui/panels.tsx";
import { authenticate, goToProvider, type Methods, post, readMethods } from "./auth-requests.ts";
import { enter } from "./receive-person.ts";
import { isAccountProblem, pathIn, problemIn } from "./sign-in-problem.ts";

type WaysProps = { methods: Methods | undefined; link: string | undefined };

/** The ways of signing in that need no key, as far as they are switched on. `link` is the code of the operator's link. */
export function WaysToSignIn({ methods, link }: WaysProps) {
  const [error, setError] = useState<unknown>();
  const [isPending, setPending] = useState(false);
  const problem = problemIn(window.location.search);

  async function run(signIn: () => Promise<void>): Promise<void> {
    setPending(true);
    setError(undefined);
    try {
      await signIn();
      await enter(pageToOpen());
    } catch (failure) {
      setError(failure);
      setPending(false);
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the code of an address is used once.
  useEffect(() => {
    if (link !== undefined) void run(() => signInByLink(link));
  }, []);

  return (
    <>
      {problem !== undefined && error === undefined && <Warning>{problem}</Warning>}
      {error !== undefined && <ErrorPanel error={error} />}
      {methods?.oidc === true && <ProviderButtons returnTo={pageToOpen} />}
      {methods?.passkey === true && (
        <Button isPending={isPending} onPress={() => void run(() => authenticate("sign_in"))}>
          Sign in with a passkey
        </Button>
      )}
    </>
  );
}

type ProviderProps = {
  /** Returns the path to return to. Called when the person leaves. */
  returnTo: () => string;
  isDisabled?: boolean;
};

/** Links to the identity provider. Without the second one, the provider signs in the same account again. */
export function ProviderButtons({ returnTo, isDisabled = false }: ProviderProps) {
  return (
    <>
      <Button
        variant="primary"
        isDisabled={isDisabled}
        onPress={() => goToProvider({ returnTo: returnTo() })}
      >
        Sign in with your organization
      </Button>
      {isAccountProblem(window.location.search) && (
        <Button
          isDisabled={isDisabled}
          onPress={() => goToProvider({ returnTo: returnTo(), choosesAccount: true })}
        >
          Use another account
        </Button>
      )}
    </>
  );
}

/** Reads the ways that are switched on; undefined until the server has answered. */
export function useSignInMethods() {
  const [methods, setMethods] = useState<Awaited<ReturnType<typeof readMethods>>>();
  useEffect(() => {
    // Without an answer, the page accepts keys.
    void readMethods().then(setMethods);
  }, []);
  return methods;
}

/** The page to open after the sign-in: the current one, or the one that the person wanted before a failed sign-in. */
function pageToOpen(): string {
  const { pathname, search } = window.location;
  return pathname === "/sign-in" ? pathIn(search) : pathname + search;
}

async function signInByLink(code: string): Promise<void> {
  await post("/auth/link/verify", { code }).catch((error: unknown) => {
    if (!(error instanceof ApiProblem) || error.status !== 404) throw error;
    throw new AdvisedError(
      "The sign-in link was used already or is older than five minutes.",
      "Ask the operator for another one.",
    );
  });
}
