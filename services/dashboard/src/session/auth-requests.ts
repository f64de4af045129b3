import { sendConfirmed } from "../api/confirmed.ts";
import { AdvisedError, ApiProblem } from "../api/problem.ts";
import { confirmSignIn } from "./confirmation.ts";

/** Requests below `/auth/`, which are not part of the public API: signing in, passkeys and invitations. */
export type Methods = { oidc: boolean; passkey: boolean; operator_link: boolean; key: boolean };

/** An open invitation. Reading it does not use it up. */
export type ReadInvitation = {
  organization: { id: string; name: string };
  email: string;
  methods: Methods;
};

/** Reads the ways of signing in, and whether the browser has a session. Undefined if the server cannot be reached. */
export async function readMethods(): Promise<(Methods & { signed_in: boolean }) | undefined> {
  const response = await fetch("/auth/methods").catch(() => undefined);
  return response?.ok === true ? response.json() : undefined;
}

/** Sends a request below `/auth/`. Throws the error of the server. */
export async function post<Body = void>(path: string, body: object): Promise<Body> {
  const request = new Request(path, {
    method: "POST",
    headers: { "Content-Type": "application/json" },
    body: JSON.stringify(body),
  });
  const response = await sendConfirmed(request, confirmSignIn);
  const answered = await response.json().catch(() => undefined);
  if (!response.ok) throw ApiProblem.from(answered, response);
  return answered as Body;
}

export const readInvitation = (code: string) =>
  post<ReadInvitation>("/auth/invitation/read", { code });

/** Signs in by a passkey, or confirms the sign-in of the session. */
export async function authenticate(purpose: "sign_in" | "confirm"): Promise<void> {
  const { startAuthentication } = await import("@simplewebauthn/browser");
  type Options = Parameters<typeof startAuthentication>[0]["optionsJSON"];
  const { options } = await post<{ options: Options }>("/auth/passkey/options", { purpose });
  const credential = await startAuthentication({ optionsJSON: options }).catch(noPasskey);
  await post("/auth/passkey/verify", { purpose, credential });
}

/** Registers a passkey of the signed-in person, or of the person of an invitation, who is signed in then. */
export async function registerPasskey(named: { name: string; invitation?: string }): Promise<void> {
  const { startRegistration } = await import("@simplewebauthn/browser");
  type Options = Parameters<typeof startRegistration>[0]["optionsJSON"];
  const { name, ...invited } = named;
  const asked = { purpose: "register", ...invited };
  const { options } = await post<{ options: Options }>("/auth/passkey/options", asked);
  const credential = await startRegistration({ optionsJSON: options }).catch(noPasskey);
  await post("/auth/passkey/verify", { ...asked, name, credential });
}

/** The message of the browser says why: cancelled, timed out, already registered on this device. */
function noPasskey(cause: unknown): never {
  throw new AdvisedError(
    "The browser used no passkey.",
    cause instanceof Error ? cause.message : "Try again.",
  );
}

/** A sign-in at the identity provider, which leads back to a path of this installation. */
type ProviderSignIn = {
  returnTo: string;
  /** Confirms the sign-in of the session. */
  confirms?: true;
  /** The person chooses among the accounts of the provider. */
  choosesAccount?: true;
};

export function goToProvider(signIn: ProviderSignIn): void {
  window.location.assign(addressOf(signIn));
}

/** Signs in at the identity provider in a new tab, which then shows a path of this installation. */
export function openProvider(returnTo: string): void {
  window.open(addressOf({ returnTo }), "_blank", "noopener");
}

function addressOf({ returnTo, confirms, choosesAccount }: ProviderSignIn): string {
  const query = new URLSearchParams({
    return_to: returnTo,
    ...(confirms && { confirm: "1" }),
    ...(choosesAccount && { prompt: "select_account" }),
  });
  return `/auth/oidc/start?${query}`;
}
