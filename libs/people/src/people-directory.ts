import {
  type GrantedRole,
  type GroupsEntry,
  type PeopleAddress,
  type PeopleEntry,
  type PeopleValue,
  peopleKey,
  type SessionEntry,
  type SignInMethod,
  type UserEntry,
} from "@halyard/contracts";
import { comparesWith, isSecretOf, type SessionCookie } from "./session-cookie.ts";

/** A session that has neither ended nor expired. Times are milliseconds since 1970. */
export type LiveSession = {
  id: string;
  personId: string;
  via: SignInMethod;
  groups: readonly string[];
  signedInAtMs: number;
  confirmedAtMs: number;
  expiresAtMs: number;
  idleUntilMs: number;
};

/** A user of a person in one organization, with the roles of a session. */
export type MemberUser = { organizationId: string; userId: string; grants: readonly GrantedRole[] };

/** Users, groups and sessions of the people bucket, in memory. Versions decide, because entries may be repeated or late. */
export type PeopleDirectory = {
  /** Begins a replacement by a full read. The current state stays in use until `finish`. */
  beginReplacing(): { take(entry: PeopleEntry): void; finish(): void };
  /** Applies a newer entry, whose signature was verified. */
  apply(entry: PeopleEntry): void;
  /** Returns the session of a cookie; undefined for an unknown or expired session. */
  session(cookie: SessionCookie, nowMs: number): LiveSession | undefined;
  /** Returns the user of the session's person in an organization. */
  memberOf(session: LiveSession, organizationId: string): MemberUser | undefined;
  /** Returns a user's entry; undefined for a user who has never had a role. */
  user(organizationId: string, userId: string): UserEntry | undefined;
  /** Returns the value of an entry; undefined without one. */
  valueOf(address: PeopleAddress): PeopleValue | undefined;
};

/** All entries by key, and the users of each person. */
type State = {
  entries: Map<string, PeopleValue>;
  /** A list, because most people have one user, and a map of one takes 200 bytes more. */
  usersOf: Map<string, readonly UserEntry[]>;
  /** Number of entries at which those that have ended are removed. */
  sweepsAt: number;
};

/** Ended sessions of a small installation may stay in memory. */
const minEntriesOfSweep = 1_000;

export function createPeopleDirectory(): PeopleDirectory {
  let state = emptyState();
  const find = <Kind extends LiveValue["kind"]>(kind: Kind, key: string) => {
    const value = state.entries.get(key);
    return value !== undefined && !("deleted" in value) && value.kind === kind
      ? (value as Extract<LiveValue, { kind: Kind }>)
      : undefined;
  };
  const userOf = (personId: string, organizationId: string) =>
    state.usersOf.get(personId)?.find((user) => user.organization_id === organizationId);
  const groupGrants = ({ groups }: LiveSession, organizationId: string): GrantedRole[] =>
    groups.length === 0
      ? []
      : (find("groups", peopleKey({ kind: "groups", organizationId }))?.grants ?? []).filter(
          ({ group }) => groups.includes(group),
        );

  return {
    beginReplacing() {
      const next = emptyState();
      return {
        take: (entry) => put(next, entry),
        finish() {
          state = next;
        },
      };
    },
    apply: (entry) => put(state, entry),
    session({ sessionId, secret }, nowMs) {
      const entry = find("session", peopleKey({ kind: "session", sessionId }));
      if (entry === undefined) return undefined;
      const session = liveSessions.get(entry)?.ofSecret(secret) ?? prove(entry, secret);
      return session !== undefined && session.expiresAtMs > nowMs ? session : undefined;
    },
    memberOf(session, organizationId) {
      const user = userOf(session.personId, organizationId);
      if (user === undefined) return undefined;
      const grants = user.grants.concat(groupGrants(session, organizationId));
      return { organizationId, userId: user.user_id, grants };
    },
    user: (organizationId, userId) =>
      find("user", peopleKey({ kind: "user", organizationId, userId })),
    valueOf: (address) => state.entries.get(peopleKey(address)),
  };
}

type LiveValue = UserEntry | GroupsEntry | SessionEntry;

const emptyState = (): State => ({
  entries: new Map(),
  usersOf: new Map(),
  sweepsAt: minEntriesOfSweep,
});

function put(state: State, { address, value }: PeopleEntry): void {
  const { entries, usersOf } = state;
  const key = peopleKey(address);
  const known = entries.get(key);
  if (known !== undefined && known.version >= value.version) return;
  entries.set(key, value);
  if (isUserOfPerson(known)) {
    const others = usersOf.get(known.person_id)?.filter((user) => user !== known) ?? [];
    if (others.length > 0) usersOf.set(known.person_id, others);
    else usersOf.delete(known.person_id);
  }
  if (isUserOfPerson(value))
    // A spread would leave room for 16 more users in each list.
    usersOf.set(value.person_id, (usersOf.get(value.person_id) ?? []).concat(value));
  if (entries.size >= state.sweepsAt) sweep(state, Date.parse(value.committed_at));
}

/**
 * Removes expired sessions and tombstones, whenever the number of entries has doubled. The bucket loses them without a
 * message. Messages arrive in order, so no older value can replace a removed tombstone.
 */
function sweep(state: State, nowMs: number): void {
  for (const [key, value] of state.entries)
    if ("deleted" in value || (value.kind === "session" && Date.parse(value.expires_at) < nowMs))
      state.entries.delete(key);
  state.sweepsAt = Math.max(minEntriesOfSweep, 2 * state.entries.size);
}

const isUserOfPerson = (
  value: PeopleValue | undefined,
): value is UserEntry & { person_id: string } =>
  value !== undefined && !("deleted" in value) && value.kind === "user" && value.person_id !== null;

/**
 * Sessions in use, by their entries. As for API keys, a later secret is compared with the first one that was correct,
 * because a hash costs more than the comparison. Each request brings the secret into the memory of this process anyway,
 * and the copy goes with the entry.
 */
const liveSessions = new WeakMap<
  SessionEntry,
  { ofSecret(secret: string): LiveSession | undefined }
>();

/** Returns the session of an entry if the secret is correct. */
function prove(entry: SessionEntry, secret: string): LiveSession | undefined {
  if (!isSecretOf(secret, entry.secret_sha256)) return undefined;
  const session: LiveSession = {
    id: entry.session_id,
    personId: entry.person_id,
    via: entry.via,
    groups: entry.groups,
    signedInAtMs: Date.parse(entry.signed_in_at),
    confirmedAtMs: Date.parse(entry.confirmed_at),
    expiresAtMs: Date.parse(entry.expires_at),
    idleUntilMs: Date.parse(entry.idle_until),
  };
  const isProved = comparesWith(secret);
  liveSessions.set(entry, { ofSecret: (given) => (isProved(given) ? session : undefined) });
  return session;
}
