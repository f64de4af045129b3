import { type App, createProblem, isProblem, type Problem, sendProblem } from "@halyard/http";
import { type Callers, type FoundSession, type SessionCookie, setCookie } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { FastifyReply, FastifyRequest } from "fastify";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Write, Writer } from "../outbox/write.ts";
import {
  confirmSession,
  type EndedSession,
  endSessions,
  sessionLifetimeMs,
} from "../people/sessions.ts";
import {
  attemptLifetimeSeconds,
  newAttempt,
  type StoredAttempt,
  storeAttempt,
  takeAttempt,
  useTokenOnce,
} from "./attempts.ts";
import { limitFailures, limitRequests } from "./auth-limits.ts";
import { readBrowserSecret, setBrowserSecret } from "./browser-cookie.ts";
import type { SignInRefusal } from "./identify.ts";
import { findPersonOf } from "./identity-store.ts";
import type { LogoutToken } from "./logout-token.ts";
import { callbackPath, type Provider, type ProviderFailure, type SignedIn } from "./oidc.ts";
import { newCode } from "./one-time-codes.ts";
import { returnUrl } from "./return-path.ts";
import type { OidcSettings } from "./settings.ts";
import { recordOfPerson, signInPerson } from "./sign-in-person.ts";
import { startSession } from "./start-session.ts";

/**
 * Routes of signing in at the provider. After a failure, they redirect to `/sign-in` with a code, which the page explains.
 * Details of the provider's errors are in the log only.
 */
export type OidcRoutesOptions = TimeAndIds & {
  sql: Sql;
  writer: Writer;
  publicUrl: URL;
  settings: OidcSettings;
  provider: Provider;
  findSession: Callers["findSession"];
};

/** Problems that `/sign-in?problem=` explains. */
type SignInProblem = "expired" | ProviderFailure["refused"] | SignInRefusal;

type Refused = { refused: SignInProblem; detail?: string | undefined };

const maxLogoutBytes = 64 * 1024;

export function registerOidcRoutes(app: App, options: OidcRoutesOptions): void {
  const { now } = options;
  const common = { exposeHeadRoute: false } as const;
  app.get("/auth/oidc/start", {
    ...common,
    onRequest: limitRequests(now),
    handler: (request, reply) => start(options, request, reply),
  });
  app.get(callbackPath, {
    ...common,
    onRequest: limitRequests(now),
    handler: (request, reply) => finish(options, request, reply),
  });
  app.register((scope, _options, done) => {
    registerLogout(scope, options);
    done();
  });
}

async function start(options: OidcRoutesOptions, request: FastifyRequest, reply: FastifyReply) {
  const { sql, publicUrl, provider, findSession, now } = options;
  const { return_to: path, confirm, prompt } = request.query as Record<string, unknown>;
  const returnTo = returnUrl(path, publicUrl).href;
  const session = confirm === "1" ? await findSession(request) : undefined;
  if (confirm === "1" && session === undefined)
    return redirectToProblem(options, { request, reply, returnTo }, { refused: "expired" });
  const attempt = newAttempt(now(), { returnTo, sessionId: session?.id ?? null });
  const url = await provider.authorizationUrl(attempt, {
    choosesAccount: prompt === "select_account",
  });
  if (!(url instanceof URL)) return redirectToProblem(options, { request, reply, returnTo }, url);
  const secret = readBrowserSecret(request.headers.cookie, publicUrl) ?? newCode();
  await storeAttempt(sql, attempt, secret);
  reply.header("set-cookie", setBrowserSecret(publicUrl, secret, attemptLifetimeSeconds));
  return reply.redirect(url.href, seeOther);
}

const seeOther = 303;

async function finish(options: OidcRoutesOptions, request: FastifyRequest, reply: FastifyReply) {
  const { sql, publicUrl, provider, now } = options;
  const [, query = ""] = /\?(.*)/s.exec(request.raw.url ?? "") ?? [];
  const parameters = new URLSearchParams(query);
  const state = parameters.get("state") ?? "";
  const browserSecret = readBrowserSecret(request.headers.cookie, publicUrl) ?? "";
  const attempt = await takeAttempt(sql, { state, browserSecret, now: now() });
  const returnTo = attempt?.returnTo ?? publicUrl.href;
  if (attempt === undefined)
    return redirectToProblem(options, { request, reply, returnTo }, { refused: "expired" });
  const signedIn = await provider.exchange(parameters, attempt);
  const done =
    "refused" in signedIn ? signedIn : await complete(options, { request, attempt, signedIn });
  if (isProblem(done)) return sendProblem(reply, done);
  if ("refused" in done) return redirectToProblem(options, { request, reply, returnTo }, done);
  if (done.cookie !== undefined)
    reply.header("set-cookie", setCookie(publicUrl, done.cookie, sessionLifetimeMs / 1_000));
  return reply.redirect(returnTo, seeOther);
}

type Callback = {
  request: FastifyRequest;
  /** The session that the browser has so far. */
  previous: FoundSession | undefined;
  attempt: StoredAttempt;
  signedIn: SignedIn;
};
/** The new session; undefined for a confirmation. */
type Completed = { cookie?: SessionCookie };

async function complete(
  options: OidcRoutesOptions,
  completed: Omit<Callback, "previous">,
): Promise<Completed | Refused | Problem> {
  const { sessionId } = completed.attempt;
  const callback = { ...completed, previous: await options.findSession(completed.request) };
  return options.writer<Completed | Refused>((write) =>
    sessionId === null
      ? signIn(options, write, callback)
      : confirm(options, write, { ...callback, sessionId }),
  );
}

async function signIn(
  { settings, now, newId }: OidcRoutesOptions,
  write: Write,
  { request, previous, signedIn }: Callback,
): Promise<Completed | Refused> {
  const { identity, providerSession, idToken } = signedIn;
  const person = await signInPerson(write, identity, { settings: settings.admission, now, newId });
  if ("refused" in person) return person;
  const provider = { issuer: identity.issuer, session: providerSession, idToken };
  const started = { ...person, via: "oidc", groups: identity.groups, provider } as const;
  return { cookie: await startSession(write, { ...started, request, previous }, { now, newId }) };
}

/** Confirms the session that began the confirmation, if the same person has authenticated again. */
async function confirm(
  { now }: OidcRoutesOptions,
  write: Write,
  { previous, signedIn, sessionId }: Callback & { sessionId: string },
): Promise<Completed | Refused> {
  if (previous?.id !== sessionId) return { refused: "expired" };
  const personId = await findPersonOf(write.tx, signedIn.identity);
  const isConfirmed =
    personId !== null && (await confirmSession({ ...write, now }, { sessionId, personId }));
  return isConfirmed ? {} : { refused: "not_confirmed" };
}

/** Sends the browser to the page that explains the problem, and logs the problem without secrets. */
function redirectToProblem(
  { publicUrl }: OidcRoutesOptions,
  { request, reply, returnTo }: { request: FastifyRequest; reply: FastifyReply; returnTo: string },
  { refused, detail }: Refused,
): FastifyReply {
  request.log.warn({ problem: refused, detail }, "sign-in rejected");
  const page = new URL("/sign-in", publicUrl);
  page.searchParams.set("problem", refused);
  page.searchParams.set("return_to", returnTo.slice(publicUrl.origin.length));
  return reply.redirect(page.href, seeOther);
}

/** Registers the route at which the provider ends sessions (OpenID Connect Back-Channel Logout 1.0). */
function registerLogout(scope: App, options: OidcRoutesOptions): void {
  const { onRequest, countFailure } = limitFailures(options.now);
  scope.removeAllContentTypeParsers();
  scope.addContentTypeParser(
    "application/x-www-form-urlencoded",
    { parseAs: "string" },
    (_request, body, done) => done(null, new URLSearchParams(String(body))),
  );
  scope.post("/auth/oidc/backchannel-logout", {
    bodyLimit: maxLogoutBytes,
    onRequest,
    handler: async (request, reply) => {
      const tokens =
        request.body instanceof URLSearchParams ? request.body.getAll("logout_token") : [];
      const refused = await endByToken(options, tokens);
      if (refused === undefined) return reply.code(200).send();
      countFailure(request.ip);
      request.log.warn({ problem: refused.refused, detail: refused.detail }, "logout rejected");
      return sendProblem(reply, invalidLogoutToken);
    },
  });
}

const invalidLogoutToken = createProblem("VALIDATION_001", "The logout token is invalid.");

/** Ends the sessions that a token names. Returns a problem for a token that is invalid or was used before. */
async function endByToken(
  { writer, provider, now, newId }: OidcRoutesOptions,
  [token, ...others]: readonly string[],
): Promise<Refused | undefined> {
  if (token === undefined || others.length > 0) return { refused: "invalid_response" };
  const verified = await provider.verifyLogoutToken(token, now());
  if ("refused" in verified) return verified;
  const done = await writer<object>(async (write) => {
    // In the transaction, so that the provider can repeat a token whose sessions could not be ended.
    if (!(await useTokenOnce(write.tx, verified))) return usedBefore;
    const persons = new Set((await endNamed(write, verified)).map(({ personId }) => personId));
    const facts = { via: "oidc", after: { ended_by: "provider" } } as const;
    for (const personId of persons)
      await recordOfPerson(write, "sessions_ended", { ...facts, personId }, { now, newId });
    return verified;
  });
  return done === usedBefore ? usedBefore : undefined;
}

/** Ends the sessions of one sign-in at the provider, or all of an account. Returns those that ended. */
async function endNamed(
  write: Write,
  { issuer, providerSession, subject = "" }: LogoutToken,
): Promise<EndedSession[]> {
  if (providerSession !== undefined) return endSessions(write, { issuer, providerSession });
  const personId = await findPersonOf(write.tx, { issuer, subject });
  return personId === null ? [] : endSessions(write, { personId });
}

const usedBefore: Refused = { refused: "expired" };
