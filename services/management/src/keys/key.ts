import type { ApiKey, EntryOf, IssuedApiKey, KeyKind, KeyScope } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/http";
import { type Caller, includes, missingRole } from "@halyard/people";
import { checkReachesEnvironment, type Principal } from "../access/principal.ts";

/** A stored API key. The secret itself is not stored, only its digest. */
export type Key = {
  /** The id: 16 characters of the key text that identify the key. */
  id: string;
  secretSha256: string;
  kind: KeyKind;
  name: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  /** The most that a server key may do. Other kinds always have `write`. */
  scope: KeyScope;
  /** Counter that every change to the key increments. */
  version: number;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** Id of the key that issued this one, or null for the operator. */
  issuedBy: string | null;
  /** Id of the key that this one replaced by rotation, or null for an issued key. */
  successorOf: string | null;
  /** Users who can know the secret beside the key's own: the issuing person, or the user and the issuers of that key. */
  issuers: readonly string[];
};

/** A key with the time of its last use, which is not part of the key and does not change its version. */
export type KeyInUse = Key & { lastUsedAt: Date | null };

export type KeyPlace = { organizationId: string; projectId: string; environmentId: string };

/** Address of a key, as paths contain it. */
export type KeyAddress = { projectId: string; environmentId: string; keyId: string };

/** Returns a key as the API represents it. */
export function keyResource(key: KeyInUse): ApiKey {
  return {
    id: key.id,
    kind: key.kind,
    name: key.name,
    environment_id: key.environmentId,
    user_id: key.userId,
    environment_only: key.environmentOnly,
    ...(key.kind === "server" && { scope: key.scope }),
    issued_by: key.issuedBy,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

/** Returns a new key with its text, which is not stored and cannot be read again. */
export function issuedKeyResource(key: Key, text: string): IssuedApiKey {
  return { ...keyResource({ ...key, lastUsedAt: null }), key: text };
}

/** The members of a key that other services use. */
type PublishedKey = Omit<
  Key,
  "name" | "createdAt" | "revokedAt" | "issuedBy" | "successorOf" | "issuers"
>;

/** Returns the snapshot entry of a key: its scope, and the digest that other services verify it with. */
export function keyEntry(key: PublishedKey & { committedAt: Date }): EntryOf<"key"> {
  return {
    address: { kind: "key", organizationId: key.organizationId, keyId: key.id },
    value: {
      kind: "key",
      key_id: key.id,
      secret_sha256: key.secretSha256,
      key_kind: key.kind,
      organization_id: key.organizationId,
      project_id: key.projectId,
      environment_id: key.environmentId,
      user_id: key.userId,
      environment_only: key.environmentOnly,
      ...(key.scope !== "write" && { scope: key.scope }),
      expires_at: key.expiresAt?.toISOString() ?? null,
      version: key.version,
      committed_at: key.committedAt.toISOString(),
    },
  };
}

/**
 * Checks the permissions of a server key on the keys of its project. The operator has all permissions. No key can issue
 * or change a key that has more permissions than itself:
 *
 * - It can issue, rotate and revoke keys of its own user. A key of another user is 403, not 404, because the list of
 *   the project's keys contains it.
 * - A key with `environment_only` is limited to its own environment, and to keys with `environment_only`. It must set
 *   the field when it issues a key, because the default is false for every caller.
 * - It can issue and rotate only keys that expire no later than itself (`decide-key.ts`).
 *
 * The subject is the existing key or the requested one. `access/principal.ts` checks first which projects and
 * environments a key can access.
 */
export function checkMayHandle(
  principal: Principal,
  subject: { environmentId: string; userId: string; environmentOnly: boolean },
): Problem | undefined {
  const problem = checkReachesEnvironment(principal, subject.environmentId);
  if (problem !== undefined || principal.kind === "operator") return problem;
  if (principal.key.scope !== "write")
    return createProblem("AUTH_002", "Only a key with the scope write may handle keys.");
  if (principal.key.userId !== subject.userId.toLowerCase())
    return createProblem("AUTH_002", "A server key may handle the keys of its own user only.");
  if (principal.key.environmentOnly && !subject.environmentOnly)
    return createProblem(
      "AUTH_002",
      "A key with environment_only may handle only keys with environment_only: true.",
    );
  return undefined;
}

/**
 * Checks that a signed-in person may issue, rotate or revoke a key. People handle their own keys. Admins of the project
 * also handle the keys of service users, and revoke all keys.
 */
export function checkPersonMayHandle(
  person: Caller,
  subject: { projectId: string; userId: string; isOfService: boolean },
  act: "issue" | "rotate" | "revoke",
): Problem | undefined {
  if (person.userId === subject.userId.toLowerCase()) return undefined;
  const held = person.rights.at({ projectId: subject.projectId });
  if (!subject.isOfService && act !== "revoke")
    return createProblem(
      "AUTH_002",
      "People issue keys for themselves and for service users only.",
    );
  return includes(held, "admin") ? undefined : missingRole({ role: "admin", at: "project" }, held);
}

/** Returns whose keys a principal sees in a project; undefined for the keys of everybody. */
export function onlyKeysOf(principal: Principal, projectId: string): string | undefined {
  if (principal.kind === "operator" || principal.key.session === undefined) return undefined;
  return includes(principal.key.rights.at({ projectId }), "admin")
    ? undefined
    : principal.key.userId;
}
