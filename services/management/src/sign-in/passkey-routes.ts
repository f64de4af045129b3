import {
  type AssertedCredential,
  type AttestedCredential,
  compileCheck,
  PasskeyOptionsRequest,
  type PasskeyPurpose,
  PasskeyVerifyRequest,
} from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { FastifyRequest } from "fastify";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { confirmSession } from "../people/sessions.ts";
import type { AuthAnswer, AuthPost } from "./auth-post.ts";
import type { BrowserSession, FindBrowserSession } from "./browser-session.ts";
import { findUsersOf, insertPerson } from "./identity-store.ts";
import { findInvited, type InvitationContent } from "./invitation-store.ts";
import { joinByInvitation } from "./invitations.ts";
import { invalidCode } from "./links.ts";
import { issueCode, readCode, takeCode } from "./one-time-codes.ts";
import { findPasskey, insertPasskey, listPasskeys, recordUse } from "./passkey-store.ts";
import {
  authenticationOptions,
  challengeOf,
  type Passkey,
  registrationOptions,
  verifyAuthentication,
  verifyRegistration,
} from "./passkeys.ts";
import { isRecent, notRecent } from "./recent.ts";
import { peopleEntry, personContext, recordByOrganization } from "./sign-in-person.ts";
import { startSession } from "./start-session.ts";

/**
 * Routes of passkeys. A challenge is a one-time code: a response carries it, signed, and any response uses it up. It
 * belongs to one purpose, one session and one person.
 */
export type PasskeyRoutesOptions = TimeAndIds & {
  sql: Sql;
  writer: Writer;
  publicUrl: URL;
  findSession: FindBrowserSession;
};

type Challenge = {
  purpose: PasskeyPurpose;
  /** The session that asked; null for a sign-in and for a registration by invitation. */
  session_id: string | null;
  /** The person of a registration or a confirmation; null for a sign-in. */
  person_id: string | null;
};

const challengeLifetimeMs = 5 * 60_000;

export function registerPasskeyRoutes(authPost: AuthPost, options: PasskeyRoutesOptions): void {
  authPost("/auth/passkey/options", compileCheck(PasskeyOptionsRequest), (asked, request) =>
    createOptions(options, asked, request),
  );
  authPost("/auth/passkey/verify", compileCheck(PasskeyVerifyRequest), (sent, request) =>
    sent.purpose === "register"
      ? register(options, sent, request)
      : authenticate(options, sent, request),
  );
}

async function createOptions(
  options: PasskeyRoutesOptions,
  { purpose, invitation }: { purpose: PasskeyPurpose; invitation?: string | undefined },
  request: FastifyRequest,
): Promise<AuthAnswer | Problem> {
  const { sql, publicUrl, findSession, now } = options;
  const session = findSession(request.headers.cookie);
  if (purpose === "sign_in") {
    const challenge = await issueChallenge(options, { purpose, session_id: null, person_id: null });
    return { body: { options: await authenticationOptions({ publicUrl, challenge }) } };
  }
  if (invitation !== undefined) return optionsOfInvited(options, invitation);
  if (session === undefined) return noSession;
  if (purpose === "register" && !isRecent(session, now())) return notRecent;
  const ofSession = { purpose, session_id: session.id, person_id: session.personId };
  const known = await listPasskeys(sql, session.personId);
  if (purpose === "confirm") {
    if (known.length === 0) return noPasskey;
    const challenge = await issueChallenge(options, ofSession);
    return { body: { options: await authenticationOptions({ publicUrl, challenge, known }) } };
  }
  const challenge = await issueChallenge(options, ofSession);
  const [user] = await sql.begin((tx) => findUsersOf(tx, session.personId));
  const person = { id: session.personId, email: user?.email ?? "", name: null };
  return { body: { options: await registrationOptions({ publicUrl, challenge, person, known }) } };
}

/** The person of an invitation does not exist before the registration is complete. */
async function optionsOfInvited(
  options: PasskeyRoutesOptions,
  invitation: string,
): Promise<AuthAnswer | Problem> {
  const { sql, publicUrl, now, newId } = options;
  const content = await readCode<InvitationContent>(sql, "invitation", invitation, now());
  const invited = content && (await findInvited(sql, content));
  if (invited === undefined) return invalidCode;
  const id = newId();
  const ofNobody = { purpose: "register", session_id: null, person_id: id } as const;
  const challenge = await issueChallenge(options, ofNobody);
  const { email, name } = invited;
  const asked = { publicUrl, challenge, person: { id, email, name }, known: [] };
  return { body: { options: await registrationOptions(asked) } };
}

type Registration = {
  credential: AttestedCredential;
  invitation?: string | undefined;
  name?: string | undefined;
};

/** Stores a passkey of the session's person, or of a new person who follows an invitation. */
async function register(
  options: PasskeyRoutesOptions,
  { credential, invitation, name = "Passkey" }: Registration,
  request: FastifyRequest,
): Promise<AuthAnswer | Problem> {
  const { writer, findSession, now } = options;
  const taken = await takeChallenge(options, credential);
  const personId = taken?.person_id ?? null;
  if (taken?.purpose !== "register" || personId === null) return expired;
  const verified = await verifyRegistration(credential, { ...options, challenge: taken.challenge });
  if ("detail" in verified) return rejectAndLog(request, verified.detail);
  const createdAt = now();
  const passkey = { ...verified, personId, name, createdAt, lastUsedAt: null };
  const session = findSession(request.headers.cookie);
  if (taken.session_id !== null && (session === undefined || session.id !== taken.session_id))
    return noSession;
  return writer<AuthAnswer>(async (write) => {
    if (taken.session_id === null) await insertPerson(write.tx, personId, createdAt);
    if (!(await insertPasskey(write.tx, passkey))) return alreadyRegistered;
    if (taken.session_id === null)
      return joinInvited(options, write, { personId, invitation, request });
    if (session !== undefined) await auditPasskey(options, write, session);
    return {};
  });
}

async function joinInvited(
  { findSession, now, newId }: PasskeyRoutesOptions,
  write: Write,
  joining: { personId: string; invitation: string | undefined; request: FastifyRequest },
): Promise<AuthAnswer | Problem> {
  const { personId, invitation: code, request } = joining;
  if (code === undefined) return invalidCode;
  const via = "passkey" as const;
  const timeAndIds = { now, newId };
  const joined = await joinByInvitation(write, { code, personId, via }, timeAndIds);
  if (isProblem(joined)) return joined;
  await auditPasskey({ now, newId }, write, { personId, via });
  return { cookie: await startSession(write, { personId, via, request, findSession }, timeAndIds) };
}

async function auditPasskey(
  timeAndIds: TimeAndIds,
  write: Write,
  { personId, via }: Pick<BrowserSession, "personId" | "via">,
): Promise<void> {
  const users = await findUsersOf(write.tx, personId);
  recordByOrganization(
    write,
    users.map((user) => peopleEntry("passkey_added", user, personContext(user, via, timeAndIds))),
  );
}

/** Signs in by a passkey, or confirms the session of its person. */
async function authenticate(
  options: PasskeyRoutesOptions,
  { purpose, credential }: { purpose: "sign_in" | "confirm"; credential: AssertedCredential },
  request: FastifyRequest,
): Promise<AuthAnswer | Problem> {
  const { sql, writer, now } = options;
  const taken = await takeChallenge(options, credential);
  if (taken?.purpose !== purpose) return expired;
  const passkey = await findPasskey(sql, credential.id);
  if (passkey === undefined) return unknownPasskey;
  const { challenge } = taken;
  const verified = await verifyAuthentication(credential, { ...options, passkey, challenge });
  if ("detail" in verified) return rejectAndLog(request, verified.detail);
  const used = { id: passkey.id, counter: verified.counter, now: now() };
  return writer<AuthAnswer>(async (write) => {
    if (!(await recordUse(write.tx, used)))
      return rejectAndLog(request, "the counter of the passkey did not increase");
    return purpose === "sign_in"
      ? signIn(options, write, { passkey, request })
      : confirm(options, write, { passkey, request, taken });
  });
}

async function signIn(
  { findSession, now, newId }: PasskeyRoutesOptions,
  write: Write,
  { passkey: { personId }, request }: { passkey: Passkey; request: FastifyRequest },
): Promise<AuthAnswer> {
  const begun = { personId, via: "passkey" as const, request, findSession };
  return { cookie: await startSession(write, begun, { now, newId }) };
}

async function confirm(
  { findSession, now }: PasskeyRoutesOptions,
  write: Write,
  { passkey, request, taken }: { passkey: Passkey; request: FastifyRequest; taken: Challenge },
): Promise<AuthAnswer | Problem> {
  const session = findSession(request.headers.cookie);
  if (session === undefined || session.id !== taken.session_id) return noSession;
  const which = { sessionId: session.id, personId: passkey.personId };
  return (await confirmSession({ ...write, now }, which)) ? {} : unknownPasskey;
}

function issueChallenge({ sql, now }: PasskeyRoutesOptions, content: Challenge): Promise<string> {
  const expiresAt = new Date(now().getTime() + challengeLifetimeMs);
  return issueCode(sql, { purpose: "passkey", content, expiresAt });
}

/** Uses up the challenge of a response, in a transaction of its own: a response that is rejected uses it up too. */
async function takeChallenge(
  { sql, now }: PasskeyRoutesOptions,
  { response }: AssertedCredential | AttestedCredential,
): Promise<(Challenge & { challenge: string }) | undefined> {
  const challenge = challengeOf(response.clientDataJSON);
  if (challenge === undefined) return undefined;
  const taken = await sql.begin((tx) => takeCode<Challenge>(tx, "passkey", challenge, now()));
  return taken && { ...taken, challenge };
}

function rejectAndLog(request: FastifyRequest, detail: string): Problem {
  request.log.warn({ detail }, "passkey rejected");
  return invalidResponse;
}

const invalidResponse = createProblem("AUTH_001", "The passkey could not be verified: try again.");
const unknownPasskey = createProblem("AUTH_001", "This passkey is not registered here.");
const noSession = createProblem("AUTH_001", "Sign in first.");
const expired = createProblem("NOT_FOUND_001", "The request has expired or was used: try again.");
const noPasskey = createProblem("CONFLICT_001", "You have no passkey: sign in again instead.");
const alreadyRegistered = createProblem("CONFLICT_001", "This passkey is already registered.");
