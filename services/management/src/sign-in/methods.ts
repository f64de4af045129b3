import type { KeyLimits } from "@halyard/api-keys";
import type { SignInMethods, WaysToSignIn } from "@halyard/contracts";
import { type App, sendProblem } from "@halyard/http";
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

/**
 * Registers the route that returns the ways, and the state of the browser. Every load of a page calls it. An invalid session
 * counts for its address, as on the routes that need one.
 */
export function registerSignInMethods(
  app: App,
  methods: SignInMethods,
  { callers, limits, now }: { callers: Callers; limits: KeyLimits; now: () => Date },
): void {
  app.get("/auth/methods", async (request, reply) => {
    setAuthHeaders(reply);
    const isSignedIn = (await callers.findSession(request)) !== undefined;
    if (!isSignedIn && callers.hasCookie(request)) {
      const problem = limits.rejectInvalidKey(request.ip, now().getTime());
      if (problem.rejected === "RATE_001") return sendProblem(reply, problem);
    }
    return reply.send({ ...methods, signed_in: isSignedIn } satisfies WaysToSignIn);
  });
}
