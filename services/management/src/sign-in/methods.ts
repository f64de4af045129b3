import type { SignInMethods, WaysToSignIn } from "@halyard/contracts";
import type { App } from "@halyard/http";
import type { Callers } from "@halyard/people";
import { setAuthHeaders } from "./auth-limits.ts";
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

/** Registers the route that returns the ways, and the state of the browser. Every load of a page calls it. */
export function registerSignInMethods(
  app: App,
  methods: SignInMethods,
  findSession: Callers["findSession"],
): void {
  app.get("/auth/methods", async (request, reply) => {
    setAuthHeaders(reply);
    const isSignedIn = (await findSession(request)) !== undefined;
    return reply.send({ ...methods, signed_in: isSignedIn } satisfies WaysToSignIn);
  });
}
