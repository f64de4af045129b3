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

/** Returns the problem of a sign-in in words, from the query of the sign-in page; undefined if there is none. */
export function problemIn(search: string): string | undefined {
  const code = new URLSearchParams(search).get("problem");
  return code === null ? undefined : (problems[code] ?? "You could not be signed in.");
}

/** Returns the path of this installation to which a failed sign-in was to return, or else the start page. */
export function pathIn(search: string): string {
  const path = new URLSearchParams(search).get("return_to") ?? "/";
  // A path such as `//example.com` would name another host.
  return /^\/(?![/\\])/.test(path) && !path.startsWith("/sign-in") ? path : "/";
}
