/** Messages about a failed sign-in at the identity provider, by the code in the address. */
const problems: Readonly<Record<string, string>> = {
  provider_unavailable: "Your identity provider does not respond. Try again in a minute.",
  denied: "Your identity provider has rejected the sign-in, or it was cancelled.",
  expired:
    "This sign-in took longer than ten minutes, was finished before, or began in another browser. Begin again.",
  invalid_response: "The response of your identity provider is not valid.",
  no_account:
    "There is no user with your address. Use another account, or ask an owner of your organization for an invitation.",
  address_not_verified: "Your identity provider has not verified your address.",
  other_identity:
    "Another account signs in with this address. Use that one. The operator can change which one it is.",
  groups_by_reference:
    "Your account is in too many groups. Tell the operator of this installation.",
  not_confirmed: "The confirmation failed: sign in again with the same account.",
};

/** Problems that another account of the person may not have. */
const accountProblems = [
  "no_account",
  "address_not_verified",
  "other_identity",
  "groups_by_reference",
];

/** Returns whether another account may help after a failed sign-in. */
export const isAccountProblem = (search: string): boolean =>
  accountProblems.includes(new URLSearchParams(search).get("problem") ?? "");

/** Returns the message about a failed sign-in, from the query of the sign-in page; undefined without one. */
export function problemIn(search: string): string | undefined {
  const code = new URLSearchParams(search).get("problem");
  return code === null ? undefined : (problems[code] ?? "You could not be signed in.");
}

/** Returns the path that a failed sign-in names as its target; the start page for anything but a path. */
export function pathIn(search: string): string {
  const path = new URLSearchParams(search).get("return_to") ?? "/";
  // A path such as `//example.com` would name another host.
  return /^\/(?![/\\])/.test(path) && !path.startsWith("/sign-in") ? path : "/";
}
