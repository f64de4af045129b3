import {
  type AssertedCredential,
  type AttestedCredential,
  compileCheck,
  PasskeyOptionsRequest,
  type PasskeyPurpose,
  PasskeyVerifyRequest,
} from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import { type Callers, checkRecent } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import type { FastifyRequest } from "fastify";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Write, Writer } from "../outbox/write.ts";
import { confirmSession } from "../people/sessions.ts";
import type { AuthAnswer, AuthPost } from "./auth-post.ts";
import { findUsersOf, insertPerson } from "./identity-store.ts";
import { findInvited, type InvitationContent } from "./invitation-store.ts";
import { joinByInvitation } from "./invitations.ts";
import { invalidCode } from "./links.ts";
import { issueCode, readCode, takeCode } from "./one-time-codes.ts";
import { findPasskey, insertPasskey, listPasskeys, recordUse } from "./passkey-store.ts";
import {
  authenticationOptions,
  challengeOf,
  registrationOptions,
  verifyAuthentication,
  verifyRegistration,
} from "./passkeys.ts";
import { recordOfPerson } from "./sign-in-person.ts";
import { type Started, startSession } from "./start-session.ts";

/**
 * Routes of passkeys. A challenge is a one-time code: a response carries it, signed, and any response uses it up. It
 * belongs to one purpose, one session and one person.
 */
type PasskeyRoutesOptions = TimeAndIds & {
  sql: Sql;
  writer: Writer;
  publicUrl: URL;
  findSession: Callers["findSession"];
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
  if (purpose === "sign_in") {
    const challenge = await issueChallenge(options, { purpose, session_id: null, person_id: null });
    return { body: { options: await authenticationOptions({ publicUrl, challenge }) } };
  }
  if (invitation !== undefined) return optionsOfInvited(options, invitation);
  const session = await findSession(request);
  if (session === undefined) return noSession;
  const tooOld = purpose === "register" ? checkRecent(session, now().getTime()) : undefined;
  if (tooOld !== undefined) return tooOld;
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

/** Stores a passkey of the session's person, or of a new person with an invitation. */
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
  const session = await findSession(request);
  if (taken.session_id !== null && session?.id !== taken.session_id) return noSession;
  return writer<AuthAnswer>(async (write) => {
    if (taken.session_id === null) await insertPerson(write.tx, personId, createdAt);
    if (!(await insertPasskey(write.tx, passkey))) return alreadyRegistered;
    if (taken.session_id === null)
      return joinInvited(options, write, { personId, invitation, request, previous: session });
    if (session !== undefined) await recordOfPerson(write, "passkey_added", session, options);
    return {};
  });
}

type Joining = Pick<Started, "personId" | "request" | "previous"> & {
  invitation: string | undefined;
};

async function joinInvited(
  { now, newId }: PasskeyRoutesOptions,
  write: Write,
  { invitation: code, ...joining }: Joining,
): Promise<AuthAnswer | Problem> {
  if (code === undefined) return invalidCode;
  const person = { personId: joining.personId, via: "passkey" as const };
  const timeAndIds = { now, newId };
  const joined = await joinByInvitation(write, { code, ...person }, timeAndIds);
  if (isProblem(joined)) return joined;
  await recordOfPerson(write, "passkey_added", person, timeAndIds);
  return { cookie: await startSession(write, { ...joining, ...person }, timeAndIds) };
}

/** Signs in by a passkey, or confirms the session of its person. */
async function authenticate(
  options: PasskeyRoutesOptions,
  { purpose, credential }: { purpose: "sign_in" | "confirm"; credential: AssertedCredential },
  request: FastifyRequest,
): Promise<AuthAnswer | Problem> {
  const { sql, writer, findSession, now, newId } = options;
  const taken = await takeChallenge(options, credential);
  if (taken?.purpose !== purpose) return expired;
  const passkey = await findPasskey(sql, credential.id);
  if (passkey === undefined) return unknownPasskey;
  const { challenge } = taken;
  const verified = await verifyAuthentication(credential, { ...options, passkey, challenge });
  if ("detail" in verified) return rejectAndLog(request, verified.detail);
  const used = { id: passkey.id, counter: verified.counter, now: now() };
  const previous = await findSession(request);
  const { personId } = passkey;
  return writer<AuthAnswer>(async (write) => {
    if (!(await recordUse(write.tx, used)))
      return rejectAndLog(request, "the counter of the passkey did not increase");
    if (purpose === "confirm") return confirm(options, write, { personId, previous, taken });
    const started = { personId, via: "passkey", request, previous } as const;
    return { cookie: await startSession(write, started, { now, newId }) };
  });
}

async function confirm(
  { now }: PasskeyRoutesOptions,
  write: Write,
  { personId, previous, taken }: Pick<Started, "personId" | "previous"> & { taken: Challenge },
): Promise<AuthAnswer | Problem> {
  if (previous === undefined || previous.id !== taken.session_id) return noSession;
  const which = { sessionId: previous.id, personId };
  return (await confirmSession({ ...write, now }, which)) ? {} : unknownPasskey;
}

function issueChallenge({ sql, now }: PasskeyRoutesOptions, content: Challenge): Promise<string> {
  const expiresAt = new Date(now().getTime() + challengeLifetimeMs);
  return issueCode(sql, { purpose: "passkey", content, expiresAt });
}

/** Uses up the challenge of a response, in a separate transaction, because a rejected response uses it up too. */
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
