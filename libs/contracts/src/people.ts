import { z } from "zod";
import { compileCheck } from "./json-schema.ts";

/**
 * The people bucket: users, roles and sessions, for all services except edges, which may not read it. Management writes
 * one entry for each user with a role or a person, each session, and each organization that maps groups. Every entry is
 * signed. Names and addresses are not in it.
 */

/** Roles in ascending order. Each role includes the previous ones. */
export const roles = ["viewer", "editor", "approver", "admin", "owner"] as const;
export const Role = z.enum(roles);
export type Role = z.infer<typeof Role>;

/** Methods of signing in. */
export const SignInMethod = z.enum(["oidc", "passkey", "operator"]);
export type SignInMethod = z.infer<typeof SignInMethod>;

/** Identification of the actor of a change. A method of sign-in means a session. `operator` also means the token. */
export const ChangeVia = z.enum([...SignInMethod.options, "key", "schedule", "change_request"]);
export type ChangeVia = z.infer<typeof ChangeVia>;

/** The most that a server key may do: read, also propose changes, or also make them. */
export const KeyScope = z.enum(["read", "propose", "write"]);
export type KeyScope = z.infer<typeof KeyScope>;

/** The people bucket: a KV bucket with the newest value of each entry. */
export const peopleBucket = {
  bucket: "PEOPLE",
  streamName: "KV_PEOPLE",
  subjectPrefix: "$KV.PEOPLE.",
} as const;

/** Prefix of an entry's key in its signed text, so that no entry of the snapshot can be copied into this bucket. */
export const peopleSignaturePrefix = "people/";

const Uuid = z.string().regex(/^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/);
const Instant = z.string().meta({ format: "date-time" });
const Stamp = { version: z.int().min(1), committed_at: Instant, signature: z.string().optional() };

/** A role in an organization, in one of its projects, or in some environments of a project. */
const GrantedRole = {
  role: Role,
  project_id: Uuid.optional(),
  environment_ids: z.array(Uuid).min(1).max(50).optional(),
};

/** A user who has or had a role, or whose person has signed in. Without an entry, a user is as before release 0.2. */
export const UserEntry = z.object({
  kind: z.literal("user"),
  organization_id: Uuid,
  user_id: Uuid,
  /** The person whom the user represents in this organization; null for a user who never signed in. */
  person_id: Uuid.nullable(),
  /**
   * True if roles bound the keys of the user. It stays true after the withdrawal of the last grant. Otherwise the
   * withdrawal would give the keys more rights.
   */
  governed: z.boolean(),
  grants: z.array(z.object(GrantedRole)),
  ...Stamp,
});

/** The roles of the identity provider's groups in an organization. */
export const GroupsEntry = z.object({
  kind: z.literal("groups"),
  organization_id: Uuid,
  grants: z.array(z.object({ group: z.string(), ...GrantedRole })),
  ...Stamp,
});

export const SessionEntry = z.object({
  kind: z.literal("session"),
  session_id: Uuid,
  /** Lowercase hexadecimal SHA-256 of the secret in the cookie. */
  secret_sha256: z.string().regex(/^[0-9a-f]{64}$/),
  person_id: Uuid,
  via: SignInMethod,
  /** Values of the claim of groups at this sign-in. */
  groups: z.array(z.string()),
  signed_in_at: Instant,
  /** Time of the sign-in or of the last confirmation. */
  confirmed_at: Instant,
  expires_at: Instant,
  /** Only management enforces it, because only management moves it. */
  idle_until: Instant,
  ...Stamp,
});

const PeopleTombstone = z.object({ deleted: z.literal(true), ...Stamp });

/** The last entry of a full write. Each full write has a new epoch. */
export const PeopleComplete = z.object({
  epoch: Uuid,
  /** First sequence of the epoch's entries. */
  from: z.int().min(1),
  signed_by: z.string().optional(),
  signature: z.string().optional(),
});

export type UserEntry = z.infer<typeof UserEntry>;
export type GroupsEntry = z.infer<typeof GroupsEntry>;
export type SessionEntry = z.infer<typeof SessionEntry>;
type PeopleTombstone = z.infer<typeof PeopleTombstone>;
export type PeopleComplete = z.infer<typeof PeopleComplete>;
export type PeopleValue = UserEntry | GroupsEntry | SessionEntry | PeopleTombstone;
/** A role in a scope, in the form of an entry. */
export type GrantedRole = UserEntry["grants"][number];

export type PeopleAddress =
  | { kind: "user"; organizationId: string; userId: string }
  | { kind: "groups"; organizationId: string }
  | { kind: "session"; sessionId: string };

export const peopleCompleteKey = "complete";

export function peopleKey(address: PeopleAddress): string {
  switch (address.kind) {
    case "user":
      return `user.${address.organizationId}.${address.userId}`;
    case "groups":
      return `groups.${address.organizationId}`;
    case "session":
      return `session.${address.sessionId}`;
  }
}

const checkUser = compileCheck(UserEntry);
const checkGroups = compileCheck(GroupsEntry);
const checkSession = compileCheck(SessionEntry);
const checkTombstone = compileCheck(PeopleTombstone);
export const checkPeopleComplete = compileCheck(PeopleComplete);

/** An entry of the people bucket with its address. */
export type PeopleEntry = { address: PeopleAddress; value: PeopleValue };

/**
 * Parses an entry. Returns undefined for a key or a value that this version does not know. Ignoring it gives no rights.
 */
export function parsePeopleEntry(key: string, value: unknown): PeopleEntry | undefined {
  const address = parseKey(key);
  if (address === undefined) return undefined;
  const isDeleted = typeof value === "object" && value !== null && "deleted" in value;
  const checked = isDeleted ? checkTombstone(value) : checkValue[address.kind](value);
  return checked.ok ? { address, value: checked.value } : undefined;
}

const checkValue = { user: checkUser, groups: checkGroups, session: checkSession };

function parseKey(key: string): PeopleAddress | undefined {
  const [kind, first, second, ...rest] = key.split(".");
  if (rest.length > 0 || first === undefined) return undefined;
  if (kind === "user" && second !== undefined)
    return { kind, organizationId: first, userId: second };
  if (second !== undefined) return undefined;
  if (kind === "groups") return { kind, organizationId: first };
  if (kind === "session") return { kind, sessionId: first };
  return undefined;
}
