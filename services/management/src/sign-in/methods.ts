import type { SignInMethods, WaysToSignIn } from "@halyard/contracts";
import type { App } from "@halyard/http";
import { setAuthHeaders } from "./auth-limits.ts";
import type { FindBrowserSession } from "./browser-session.ts";
import type { SignInSettings } from "./settings.ts";

/** Returns the ways of signing in. Without settings, only keys open the dashboard. */
export function signInMethods(settings: SignInSettings | undefined, byKey: boolean): SignInMethods {
  return {
    oidc: settings?.oidc !== undefined,
    passkey: settings?.passkeys ?? false,
    operator_link: settings?.byOperator ?? false,
    key: byKey,
  };
}

/**
 * Registers the route by which pages learn the ways, and whether the browser is signed in. It has no limit, because it
 * reads memory only.
 */
export function registerSignInMethods(
  app: App,
  methods: SignInMethods,
  findSession: FindBrowserSession | undefined,
): void {
  app.get("/auth/methods", ({ headers }, reply) => {
    setAuthHeaders(reply);
    const isSignedIn = findSession?.(headers.cookie) !== undefined;
    return reply.send({ ...methods, signed_in: isSignedIn } satisfies WaysToSignIn);
  });
}
