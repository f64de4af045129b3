import { useEffect, useState } from "react";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import { Button } from "../ui/button.tsx";
import { ErrorPanel } from "../ui/error-panel.tsx";
import { Warning } from "../ui/panels.tsx";

type Methods = { oidc: boolean; passkey: boolean; operator_link: boolean; key: boolean };

/** The fragment of the operator's link. Neither browsers nor scanners of mail send fragments to servers. */
const linkFragment = /^#link=([A-Za-z0-9_-]{43})$/;

/** Why a sign-in at the identity provider failed, by the code in the address. */
const problems: Readonly<Record<string, string>> = {
  provider_unavailable: "Your identity provider does not respond. Try again in a minute.",
  denied: "Your identity provider has rejected the sign-in, or it was cancelled.",
  expired: "The sign-in took too long, or it began in another browser. Begin again.",
  invalid_response: "The response of your identity provider is not valid.",
  no_account:
    "There is no user with your address. Ask an owner of your organization for an invitation.",
  address_not_verified: "Your identity provider has not verified your address.",
  other_identity: "Another account signs in with this address. The operator can change that.",
  groups_by_reference:
    "Your account is in too many groups. Tell the operator of this installation.",
  not_confirmed: "The confirmation failed: sign in again with the same account.",
};

/** The ways of signing in that need no key, as far as they are switched on. */
export function WaysToSignIn({ methods }: { methods: Methods | undefined }) {
  const [error, setError] = useState<unknown>();
  const [isPending, setPending] = useState(false);
  const problem = new URLSearchParams(window.location.search).get("problem");

  async function run(signIn: () => Promise<void>): Promise<void> {
    setPending(true);
    setError(undefined);
    try {
      await signIn();
      window.location.replace(pageToOpen());
    } catch (failure) {
      setError(failure);
      setPending(false);
    }
  }
  // biome-ignore lint/correctness/useExhaustiveDependencies: the code of an address is used once.
  useEffect(() => {
    const code = linkFragment.exec(window.location.hash)?.[1];
    if (code === undefined) return;
    window.history.replaceState(null, "", window.location.pathname);
    void run(() => signInByLink(code));
  }, []);

  return (
    <>
      {problem !== null && error === undefined && (
        <Warning>{problems[problem] ?? "You could not be signed in."}</Warning>
      )}
      {error !== undefined && <ErrorPanel error={error} />}
      {methods?.oidc === true && (
        <Button
          variant="primary"
          onPress={() => window.location.assign(`/auth/oidc/start?return_to=${returnPath()}`)}
        >
          Sign in with your organization
        </Button>
      )}
      {methods?.passkey === true && (
        <Button isPending={isPending} onPress={() => void run(signInByPasskey)}>
          Sign in with a passkey
        </Button>
      )}
    </>
  );
}

/** Reads the ways that are switched on; undefined until the server has answered. */
export function useSignInMethods(): Methods | undefined {
  const [methods, setMethods] = useState<Methods>();
  useEffect(() => {
    // Without an answer, the page accepts keys.
    fetch("/auth/methods")
      .then(async (response) => (response.ok ? setMethods(await response.json()) : undefined))
      .catch(() => undefined);
  }, []);
  return methods;
}

/** The page to open after the sign-in: the current one, or the start page. */
const pageToOpen = () =>
  window.location.pathname === "/sign-in" ? "/" : window.location.pathname + window.location.search;

const returnPath = () => encodeURIComponent(pageToOpen());

async function signInByLink(code: string): Promise<void> {
  const response = await post("/auth/link/verify", { code });
  if (response.status === 404)
    throw new AdvisedError(
      "The sign-in link was used already or is older than five minutes.",
      "Ask the operator for another one.",
    );
  await check(response);
}

async function signInByPasskey(): Promise<void> {
  const { startAuthentication } = await import("@simplewebauthn/browser");
  const purpose = "sign_in";
  const asked = await check(await post("/auth/passkey/options", { purpose }));
  const { options } = (await asked.json()) as {
    options: Parameters<typeof startAuthentication>[0]["optionsJSON"];
  };
  const credential = await startAuthentication({ optionsJSON: options }).catch((cause: unknown) => {
    throw new AdvisedError("No passkey was used.", cause instanceof Error ? cause.message : "");
  });
  await check(await post("/auth/passkey/verify", { purpose, credential }));
}

const post = (path: string, body: object) =>
  fetch(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });

async function check(response: Response): Promise<Response> {
  if (response.ok) return response;
  throw ApiProblem.from(await response.json().catch(() => undefined), response);
}
