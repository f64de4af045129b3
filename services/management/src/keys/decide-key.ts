import type { NewApiKey } from "@halyard/api-keys";
import { type IssueKey, parseInstant } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { z } from "zod";
import type { ChangeContext } from "../access/change-context.ts";
import { type AuditEntry, auditEntry } from "../audit/audit-log.ts";
import { entryToPublish, type OutboxMessage } from "../outbox/outbox-message.ts";
import { type Key, type KeyPlace, keyEntry } from "./key.ts";

/** The result of issuing, rotating or revoking keys, decided before anything is written. */
export type KeyDecision = {
  issued?: Key;
  changed: readonly Key[];
  audit: readonly AuditEntry[];
  messages: readonly OutboxMessage[];
};

/** The context of a new key. */
export type IssueContext = ChangeContext & {
  /** The calling key, or null for the operator. */
  issuer: Key | null;
  /** The users who can know the secret of the new key. */
  issuers: readonly string[];
  /** Number of keys of the environment that are neither revoked nor expired. */
  liveKeyCount: number;
};

/**
 * Maximum number of live keys per environment. Every process of every service holds all live keys in memory, and a key
 * of the project may issue others without the operator.
 */
const maxLiveKeys = 1_000;

/** The last instant that ISO 8601 represents with a four-digit year. */
const lastInstantMs = Date.UTC(9999, 11, 31, 23, 59, 59, 999);

/** Decides the issue of a key. Without a requested expiry, the new key expires with its issuer. */
export function decideIssue(
  scope: KeyPlace & { userId: string },
  request: z.infer<typeof IssueKey>,
  material: NewApiKey,
  context: IssueContext,
): (KeyDecision & { issued: Key }) | Problem {
  const requested = readExpiry(request.expires_at ?? null, context.now);
  if (requested !== null && isProblem(requested)) return requested;
  const { issuer } = context;
  const expiresAt = requested ?? issuer?.expiresAt ?? null;
  const problem =
    checkHasScope(request) ?? checkLifetime({ expiresAt }, issuer) ?? checkRoom(context);
  if (problem !== undefined) return problem;
  const issued = newKey(material, context, {
    ...scope,
    kind: request.kind,
    name: request.name,
    environmentOnly: request.kind === "reader" || (request.environment_only ?? false),
    scope: request.scope ?? "write",
    expiresAt,
    successorOf: null,
  });
  return {
    issued,
    changed: [],
    audit: [keyAudit("key_issued", null, issued, context)],
    messages: [keyMessage(issued, context)],
  };
}

/**
 * Decides a rotation: replaces a key by a successor with the same kind, scope, restriction and expiry. The old key expires
 * after the overlap, or at its own expiry if that is earlier. Without an overlap it is revoked.
 */
export function decideRotate(
  old: Key,
  overlapSeconds: number,
  material: NewApiKey,
  context: IssueContext,
): (KeyDecision & { issued: Key }) | Problem {
  const problem =
    checkStillWorks(old, context.now) ??
    checkLifetime(old, context.issuer) ??
    // Without an overlap, the number of live keys stays the same.
    (overlapSeconds === 0 ? undefined : checkRoom(context));
  if (problem !== undefined) return problem;
  const issued = newKey(material, context, { ...old, successorOf: old.id });
  const ended =
    overlapSeconds === 0 ? revoked(old, context) : expiring(old, overlapSeconds, context);
  return {
    issued,
    changed: ended === old ? [] : [ended],
    audit: [rotationAudit(old, { ended, issued }, context)],
    messages: [keyMessage(issued, context), ...(ended === old ? [] : [keyMessage(ended, context)])],
  };
}

/** Decides the revocation of keys. Skips revoked keys and includes expired ones. */
export function decideRevoke(keys: readonly Key[], context: ChangeContext): KeyDecision {
  const working = keys.filter(({ revokedAt }) => revokedAt === null);
  const changed = working.map((key) => revoked(key, context));
  return {
    changed,
    audit: working.map((key) => keyAudit("key_revoked", key, revoked(key, context), context)),
    messages: changed.map((key) => keyMessage(key, context)),
  };
}

function newKey(
  material: NewApiKey,
  context: IssueContext,
  key: Omit<
    Key,
    "id" | "secretSha256" | "version" | "createdAt" | "revokedAt" | "issuedBy" | "issuers"
  >,
): Key {
  const { id, secretSha256 } = material;
  return {
    ...key,
    id,
    secretSha256,
    version: 1,
    createdAt: context.now,
    revokedAt: null,
    issuedBy: context.issuer?.id ?? null,
    issuers: context.issuers,
  };
}

function readExpiry(text: string | null, now: Date): Date | null | Problem {
  if (text === null) return null;
  const ms = parseInstant(text);
  if (ms === undefined || ms <= now.getTime())
    return createProblem("VALIDATION_001", "/expires_at must be in the future");
  if (ms > lastInstantMs)
    return createProblem("VALIDATION_001", "/expires_at must be before the year 10000");
  return new Date(ms);
}

function checkHasScope({ kind, scope }: z.infer<typeof IssueKey>): Problem | undefined {
  return scope === undefined || kind === "server"
    ? undefined
    : createProblem("VALIDATION_001", "/scope is for server keys only");
}

/** Rejects issuing or rotating a key that would outlive the calling key. */
function checkLifetime(
  subject: { expiresAt: Date | null },
  issuer: Key | null,
): Problem | undefined {
  const limit = issuer?.expiresAt ?? null;
  if (limit === null || (subject.expiresAt !== null && subject.expiresAt <= limit))
    return undefined;
  return createProblem(
    "AUTH_002",
    `This key expires at ${limit.toISOString()}. It may issue and rotate only keys that expire by then.`,
  );
}

function checkRoom({ liveKeyCount }: IssueContext): Problem | undefined {
  if (liveKeyCount < maxLiveKeys) return undefined;
  return createProblem(
    "CONFLICT_001",
    `The environment has ${liveKeyCount} live keys. The maximum is ${maxLiveKeys}: revoke keys that are not in use.`,
  );
}

function checkStillWorks(key: Key, now: Date): Problem | undefined {
  if (key.revokedAt !== null)
    return createProblem(
      "CONFLICT_001",
      "The key has been revoked and cannot be rotated; issue a new one.",
    );
  if (key.expiresAt !== null && key.expiresAt <= now)
    return createProblem(
      "CONFLICT_001",
      "The key has expired and cannot be rotated; issue a new one.",
    );
  return undefined;
}

function revoked(key: Key, { now }: ChangeContext): Key {
  return { ...key, version: key.version + 1, revokedAt: now };
}

function expiring(key: Key, overlapSeconds: number, { now }: ChangeContext): Key {
  const end = new Date(now.getTime() + overlapSeconds * 1000);
  if (key.expiresAt !== null && key.expiresAt <= end) return key;
  return { ...key, version: key.version + 1, expiresAt: end };
}

/** Returns the snapshot message of a key: its entry, or a tombstone if it is revoked. */
function keyMessage(key: Key, { now }: ChangeContext): OutboxMessage {
  if (key.revokedAt === null) return entryToPublish(keyEntry({ ...key, committedAt: now }));
  return entryToPublish({
    address: { kind: "key", organizationId: key.organizationId, keyId: key.id },
    value: { deleted: true, version: key.version, committed_at: now.toISOString() },
  });
}

function keyAudit(
  action: "key_issued" | "key_rotated" | "key_revoked",
  before: Key | null,
  after: Key,
  context: ChangeContext,
): AuditEntry {
  return auditEntry(context, {
    projectId: after.projectId,
    environmentId: after.environmentId,
    keyId: after.id,
    action,
    before: before && auditedKey(before),
    after: auditedKey(after),
  });
}

/** Returns the audit entry of a rotation: the change to the old key, with the id of its successor. */
function rotationAudit(
  old: Key,
  { ended, issued }: { ended: Key; issued: Key },
  context: ChangeContext,
): AuditEntry {
  const entry = keyAudit("key_rotated", old, ended, context);
  return { ...entry, after: { ...entry.after, replaced_by: issued.id } };
}

/** Returns a key as the audit log represents it, without its secret or the digest of the secret. */
function auditedKey(key: Key): Record<string, unknown> {
  return {
    kind: key.kind,
    name: key.name,
    user_id: key.userId,
    environment_only: key.environmentOnly,
    ...(key.scope !== "write" && { scope: key.scope }),
    expires_at: key.expiresAt?.toISOString() ?? null,
    revoked_at: key.revokedAt?.toISOString() ?? null,
  };
}
