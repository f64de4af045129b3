import { type App, isProblem, sendProblem } from "@halyard/http";
import { isSameOrigin, type LiveSession, setCookie } from "@halyard/people";
import type { Write } from "../outbox/write.ts";
import { endSessions } from "../people/sessions.ts";
import { crossOrigin, limitRequests } from "./auth-limits.ts";
import type { Provider } from "./oidc.ts";
import type { OidcRoutesOptions } from "./oidc-routes.ts";
import { recordOfPerson } from "./sign-in-person.ts";

type SignOutOptions = Omit<OidcRoutesOptions, "settings" | "provider" | "sql"> & {
  /** Undefined without a provider. */
  provider: Provider | undefined;
};

/**
 * Registers the route that ends the session of a browser. The response has the URL at which the browser continues: the
 * provider's, which ends its own session and returns to the sign-in page, or that page. Without a session, it has the
 * page, so that a repeated sign-out does not fail.
 */
export function registerSignOut(app: App, options: SignOutOptions): void {
  const { publicUrl, findSession, writer, now } = options;
  app.post("/auth/sign-out", {
    onRequest: limitRequests(now),
    handler: async (request, reply) => {
      if (!isSameOrigin(request.headers, publicUrl)) return sendProblem(reply, crossOrigin);
      const session = await findSession(request);
      const signInPage = new URL("/sign-in", publicUrl);
      if (session === undefined) return reply.send({ location: signInPage.href });
      const ended = await writer((write) => endSession(options, write, session));
      if (isProblem(ended)) return sendProblem(reply, ended);
      const location = await providerLogout(options, session, ended.idToken);
      const removed = { sessionId: session.id, secret: "" };
      reply.header("set-cookie", setCookie(publicUrl, removed, 0));
      return reply.send({ location: (location ?? signInPage).href });
    },
  });
}

async function endSession(
  timeAndIds: SignOutOptions,
  write: Write,
  { id: sessionId, personId, via }: LiveSession,
): Promise<{ idToken: string | undefined }> {
  const [ended] = await endSessions(write, { sessionId });
  await recordOfPerson(write, "signed_out", { personId, via }, timeAndIds);
  return { idToken: ended?.idToken ?? undefined };
}

async function providerLogout(
  { provider }: SignOutOptions,
  { via }: LiveSession,
  idToken: string | undefined,
): Promise<URL | undefined> {
  return via === "oidc" ? provider?.logoutUrl(idToken) : undefined;
}
