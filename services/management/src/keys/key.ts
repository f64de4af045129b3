import type { KeyKind } from "@halyard/api-keys";
import type { ApiKey, EntryOf, IssuedApiKey } from "@halyard/contracts";
import { createProblem, type Problem } from "@halyard/service";
import { checkReachesEnvironment, type Principal } from "../access/principal.ts";

/** An API key as it is kept: everything but the secret, of which there is only a digest. */
export type Key = {
  /** The 16 characters of the key itself by which it is looked up. */
  id: string;
  secretSha256: string;
  kind: KeyKind;
  name: string;
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  /** Raised by every change to the key. */
  version: number;
  createdAt: Date;
  expiresAt: Date | null;
  revokedAt: Date | null;
  /** The id of the key that made the request; null for the operator. */
  issuedBy: string | null;
  /** The id of the key that it replaced by rotation; null for an issued key. */
  successorOf: string | null;
};

/** A key with what other services say of its use, which is no part of it and changes no version. */
export type KeyInUse = Key & { lastUsedAt: Date | null };

/** Where a key is: an environment of a project. */
export type KeyScope = { organizationId: string; projectId: string; environmentId: string };

/** A key as paths name it: in one environment of one project. */
export type KeyAddress = { projectId: string; environmentId: string; keyId: string };

/** A key as the API shows it. */
export function keyResource(key: KeyInUse): ApiKey {
  return {
    id: key.id,
    kind: key.kind,
    name: key.name,
    environment_id: key.environmentId,
    user_id: key.userId,
    environment_only: key.environmentOnly,
    issued_by: key.issuedBy,
    created_at: key.createdAt.toISOString(),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
    last_used_at: key.lastUsedAt?.toISOString() ?? null,
  };
}

/** The one answer that carries the key itself; `text` is known at this moment only. */
export function issuedKeyResource(key: Key, text: string): IssuedApiKey {
  return { ...keyResource({ ...key, lastUsedAt: null }), key: text };
}

/** What the other services need to know of an API key: whose it is, and how to tell that it is right. */
export function keyEntry(key: {
  id: string;
  secretSha256: string;
  kind: "client" | "server";
  organizationId: string;
  projectId: string;
  environmentId: string;
  userId: string;
  environmentOnly: boolean;
  version: number;
  expiresAt: Date | null;
  committedAt: Date;
}): EntryOf<"key"> {
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
      expires_at: key.expiresAt?.toISOString() ?? null,
      version: key.version,
      committed_at: key.committedAt.toISOString(),
    },
  };
}

/**
 * Permissions of a server key on the keys of its project. The operator is not restricted. No key issues or changes
 * a key with more rights than its own:
 *
 * - It issues, rotates and revokes keys of its own user. Another user's key is 403, not 404, because
 *   the list of the project's keys shows it.
 * - One made with `environment_only` does so in its own environment, and with keys that are
 *   `environment_only` themselves. When it issues a key it has to say so: the field has one default,
 *   false, whoever asks.
 * - It issues and rotates only keys that expire no later than itself (`decide-key.ts`).
 *
 * The subject is the key as it is, or as it is to become. Which projects and environments a key reaches at all is
 * decided before, by the functions of `access/principal.ts`.
 */
export function checkMayHandle(
  principal: Principal,
  subject: { environmentId: string; userId: string; environmentOnly: boolean },
): Problem | undefined {
  const problem = checkReachesEnvironment(principal, subject.environmentId);
  if (problem !== undefined || principal.kind === "operator") return problem;
  if (principal.key.userId !== subject.userId.toLowerCase())
    return createProblem("AUTH_002", "A server key may handle the keys of its own user only.");
  if (principal.key.environmentOnly && !subject.environmentOnly)
    return createProblem(
      "AUTH_002",
      "A key with environment_only may handle only keys with environment_only: true.",
    );
  return undefined;
}
