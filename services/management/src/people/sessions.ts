import { randomBytes } from "node:crypto";
import type { SignInMethod } from "@halyard/contracts";
import { digestOfSecret, type SessionCookie } from "@halyard/people";
import { fragment, type Sql, type Transaction } from "@halyard/postgres";
import { personToPublish } from "../outbox/outbox-message.ts";
import { ended, type PeopleChange } from "../outbox/people-entries.ts";
import type { Write } from "../outbox/write.ts";

/**
 * Sessions of people. The row has what only management needs; the entry in the people bucket has what every service
 * verifies. Ids are UUIDs of version 7, so a new session sorts after the earlier ones.
 */
export type Session = {
  id: string;
  secretSha256: string;
  personId: string;
  via: SignInMethod;
  groups: readonly string[];
  /** The session at the identity provider, for its back-channel logout. */
  issuer: string | null;
  providerSession: string | null;
  /** The hint of a logout at the provider that begins here. */
  idToken: string | null;
  address: string;
  userAgent: string;
  signedInAt: Date;
  confirmedAt: Date;
  expiresAt: Date;
  idleUntil: Date;
};

/** A completed sign-in, which begins a session. */
export type SignIn = Pick<Session, "personId" | "via" | "groups" | "address" | "userAgent"> & {
  provider?: { issuer: string; session: string | undefined; idToken: string | undefined };
};

export const sessionLifetimeMs = 7 * 24 * 60 * 60 * 1_000;
const idleMs = 12 * 60 * 60 * 1_000;
const maxSessions = 20;
/** Minimum interval at which the end of an unused session moves. */
const touchIntervalMs = 10 * 60 * 1_000;
const secretBytes = 32;
/** Longer texts of browsers are cut. */
const maxUserAgentLength = 300;

type Context = Pick<Write, "tx" | "publish"> & { now: () => Date; newId: () => string };

/** Begins a session with a new id and secret. Beyond `maxSessions` of the person, the oldest ends. */
export async function beginSession(
  write: Context,
  signIn: SignIn,
): Promise<{ session: Session; cookie: SessionCookie }> {
  const { tx, publish } = write;
  const now = write.now();
  const secret = randomBytes(secretBytes).toString("base64url");
  const { personId, via, groups, address, provider } = signIn;
  const session: Session = {
    ...{ id: write.newId(), personId, via, groups, address },
    secretSha256: digestOfSecret(secret),
    issuer: provider?.issuer ?? null,
    providerSession: provider?.session ?? null,
    idToken: provider?.idToken ?? null,
    userAgent: signIn.userAgent.slice(0, maxUserAgentLength),
    ...{ signedInAt: now, confirmedAt: now },
    expiresAt: new Date(now.getTime() + sessionLifetimeMs),
    idleUntil: new Date(now.getTime() + idleMs),
  };
  // The lock makes two sign-ins of one person count each other.
  await tx`select from people where id = ${personId} for update`;
  await endWhere(
    write,
    fragment`id in (
      select id from sessions where person_id = ${personId}
      order by signed_in_at desc, id desc
      offset ${maxSessions - 1}
    )`,
  );
  await insertSession(tx, session);
  publish([entryOf(session)]);
  return { session, cookie: { sessionId: session.id, secret } };
}

/** Which sessions to end: one, all of a person, or those of a sign-in or an account at the provider. */
type WhichSessions =
  | { sessionId: string; personId?: string }
  | { personId: string }
  | { issuer: string; providerSession: string };

/** Ends sessions on every service. Returns those that ended. */
export function endSessions(
  write: Pick<Write, "tx" | "publish">,
  which: WhichSessions,
): Promise<EndedSession[]> {
  if ("sessionId" in which)
    return endWhere(
      write,
      fragment`id = ${which.sessionId} and person_id = coalesce(${which.personId ?? null}, person_id)`,
    );
  if ("personId" in which) return endWhere(write, fragment`person_id = ${which.personId}`);
  return endWhere(
    write,
    fragment`issuer = ${which.issuer} and provider_session = ${which.providerSession}`,
  );
}

export type EndedSession = Pick<Session, "id" | "personId" | "idToken" | "expiresAt">;

async function endWhere(
  { tx, publish }: Pick<Write, "tx" | "publish">,
  condition: ReturnType<typeof fragment>,
): Promise<EndedSession[]> {
  const rows = await tx<EndedSession[]>`
    delete from sessions where ${condition}
    returning id, person_id as "personId", id_token as "idToken", expires_at as "expiresAt"`;
  publish(
    rows.map(({ id, expiresAt }) =>
      personToPublish({
        address: { kind: "session", sessionId: id },
        content: ended,
        removableAt: expiresAt,
      }),
    ),
  );
  return rows;
}

/** Records that the person of a session has confirmed the sign-in now. Returns false for a session that has ended. */
export async function confirmSession(
  { tx, publish, now }: Omit<Context, "newId">,
  which: { sessionId: string; personId: string },
): Promise<boolean> {
  const [session] = await tx<Session[]>`
    update sessions set confirmed_at = ${now()}
    where id = ${which.sessionId} and person_id = ${which.personId}
    returning ${columns}`;
  if (session !== undefined) publish([entryOf(session)]);
  return session !== undefined;
}

/**
 * Moves the ends of unused sessions, for sessions that were used at these times. Each session moves at most once in
 * `touchIntervalMs`.
 */
export async function touchSessions(
  { tx, publish, now }: Omit<Context, "newId">,
  sessionIds: readonly string[],
): Promise<void> {
  const idleUntil = new Date(now().getTime() + idleMs);
  const latest = new Date(idleUntil.getTime() - touchIntervalMs);
  const touched = await tx<Session[]>`
    update sessions set idle_until = ${idleUntil}
    where id in (
      select id from sessions
      where id = any(${sessionIds as string[]}::uuid[]) and idle_until < ${latest}
        and idle_until > ${now()}
      order by id
      for update
    )
    returning ${columns}`;
  publish(touched.map(entryOf));
}

/** Returns the live sessions of a person, the newest first. */
export function listSessions(sql: Sql, personId: string, now: Date): Promise<Session[]> {
  return sql<Session[]>`
    select ${columns} from sessions
    where person_id = ${personId} and expires_at > ${now} and idle_until > ${now}
    order by signed_in_at desc, id desc`;
}

/** Returns a session by its id. */
export async function findSession(sql: Sql, sessionId: string): Promise<Session | undefined> {
  const [session] = await sql<Session[]>`
    select ${columns} from sessions where id = ${sessionId}`;
  return session;
}

/** Ends sessions that were not used for too long, up to a limit. Returns their number. */
export async function endIdleSessions(
  write: Pick<Write, "tx" | "publish">,
  now: Date,
  limit: number,
): Promise<number> {
  const ended = await endWhere(
    write,
    fragment`id in (
      select id from sessions where idle_until <= ${now} limit ${limit} for update skip locked
    )`,
  );
  return ended.length;
}

/** Removes expired sessions and codes. Returns the number of removed rows. */
export async function removeExpired(tx: Transaction, now: Date, limit: number): Promise<number> {
  const sessions = await tx`
    delete from sessions where id in (
      select id from sessions where expires_at <= ${now} limit ${limit} for update skip locked
    )`;
  const codes = await tx`
    delete from one_time_codes where digest in (
      select digest from one_time_codes
      where expires_at <= ${now} limit ${limit}
      for update skip locked
    )`;
  return Math.max(sessions.count, codes.count);
}

const columns = fragment`
  id, secret_sha256 as "secretSha256", person_id as "personId", via, groups, issuer,
  provider_session as "providerSession", id_token as "idToken", address, user_agent as "userAgent",
  signed_in_at as "signedInAt", confirmed_at as "confirmedAt", expires_at as "expiresAt",
  idle_until as "idleUntil"`;

async function insertSession(tx: Transaction, session: Session): Promise<void> {
  await tx`
    insert into sessions (id, secret_sha256, person_id, via, groups, issuer, provider_session,
      id_token, address, user_agent, signed_in_at, confirmed_at, expires_at, idle_until)
    values (${session.id}, ${session.secretSha256}, ${session.personId}, ${session.via},
      ${session.groups as string[]}::text[], ${session.issuer}, ${session.providerSession},
      ${session.idToken}, ${session.address}, ${session.userAgent}, ${session.signedInAt},
      ${session.confirmedAt}, ${session.expiresAt}, ${session.idleUntil})`;
}

/** Returns the content of the entry of a session. */
function sessionContent(session: Session): PeopleChange["content"] & { kind: "session" } {
  return {
    kind: "session",
    session_id: session.id,
    secret_sha256: session.secretSha256,
    person_id: session.personId,
    via: session.via,
    groups: [...session.groups],
    signed_in_at: session.signedInAt.toISOString(),
    confirmed_at: session.confirmedAt.toISOString(),
    expires_at: session.expiresAt.toISOString(),
    idle_until: session.idleUntil.toISOString(),
  };
}

const entryOf = (session: Session) =>
  personToPublish({
    address: { kind: "session", sessionId: session.id },
    content: sessionContent(session),
    removableAt: session.expiresAt,
  });
