/** The code of a link to the sign-in page: of the operator, or of an invitation. */
export type OneTimeCode =
  | { purpose: "link"; code: string }
  /** `isReturn`: the identity provider has led back to the page. */
  | { purpose: "invitation"; code: string; isReturn: boolean };

/** Neither browsers nor scanners of mail send fragments to servers. */
const fragment = /^#(?<purpose>link|invitation)=(?<code>[A-Za-z0-9_-]{43})$/;
const signInPath = "/sign-in";

/** Contains the code of an invitation while the person is at the identity provider, and at no other time. */
const storageKey = "halyard.invitation";

/** Returns whether a fragment has a code. */
export const hasCode = (hash: string): boolean => fragment.test(hash);

/** Takes the code out of the address, so that neither the history nor a screenshot keeps it. */
export function takeCode(): OneTimeCode | undefined {
  const { hash, pathname } = window.location;
  const kept = sessionStorage.getItem(storageKey);
  sessionStorage.removeItem(storageKey);
  const { purpose, code } = fragment.exec(hash)?.groups ?? {};
  if (code !== undefined) {
    window.history.replaceState(null, "", pathname);
    return purpose === "link"
      ? { purpose: "link", code }
      : { purpose: "invitation", code, isReturn: false };
  }
  if (kept === null || pathname !== signInPath) return undefined;
  return { purpose: "invitation", code: kept, isReturn: true };
}

/** Keeps an invitation until the provider leads back to the sign-in page. Returns the path to return to. */
export function keepInvitation(code: string): string {
  sessionStorage.setItem(storageKey, code);
  return signInPath;
}
