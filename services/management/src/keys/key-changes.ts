import { keyProblems, makeApiKey } from "@halyard/api-keys";
import { type IssueKey, isDemoUser } from "@halyard/contracts";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Transaction } from "@halyard/postgres";
import type { z } from "zod";
import { type Principal, reachesProject } from "../access/principal.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import type { Write } from "../outbox/write.ts";
import { noSuchEnvironment } from "../tenancy/environment.ts";
import {
  decideIssue,
  decideRevoke,
  decideRotate,
  type IssueContext,
  type KeyDecision,
} from "./decide-key.ts";
import { checkMayHandle, checkPersonMayHandle, type Key, type KeyAddress } from "./key.ts";
import {
  countLiveKeys,
  findUnrevokedKey,
  holdOwner,
  insertKey,
  lockIssuedKeys,
  lockKey,
  lockKeyScope,
  lockKeysOf,
  updateKeys,
} from "./key-store.ts";
import { findUser } from "./user-store.ts";

/** The use cases of API keys. Each runs in the transaction of a write. */

/** A new key with its text, which only the response to this request contains. */
export type IssuedKey = { key: Key; text: string };

type RandomBytes = (size: number) => Buffer;

export async function issueKey(
  change: Change,
  { projectId, environmentId }: { projectId: string; environmentId: string },
  request: z.infer<typeof IssueKey>,
  options: { randomBytes: RandomBytes; allowDemoUser: boolean },
): Promise<IssuedKey | Problem> {
  const { tx, principal } = change;
  if (!reachesProject(principal, projectId)) return noSuchEnvironment;
  await lockKeysOf(tx, [projectId]);
  const scope = await lockKeyScope(tx, { projectId, environmentId });
  if (scope === undefined) return noSuchEnvironment;
  const environmentOnly = request.environment_only ?? false;
  const userId = request.user_id ?? (principal.kind === "key" ? principal.key.userId : undefined);
  if (userId === undefined) return createProblem("VALIDATION_001", "/user_id is required");
  const subject = { ...scope, userId, environmentOnly };
  const problem = await checkPermitted(change, subject, "issue");
  if (problem !== undefined) return problem;
  const ownerAddress = { organizationId: scope.organizationId, userId };
  const owner = await findOwner(tx, ownerAddress, options);
  if (isProblem(owner)) return owner;
  const issuer = await readIssuer(change);
  if (issuer !== null && isProblem(issuer)) return issuer;
  const material = makeApiKey(request.kind, options.randomBytes);
  const context = await readIssueContext(change, scope, issuer);
  const decision = decideIssue({ ...scope, userId: owner.id }, request, material, context);
  if (isProblem(decision)) return decision;
  await carryOut(change, decision);
  return { key: decision.issued, text: material.key };
}

export async function rotateKey(
  change: Change,
  address: KeyAddress,
  overlapSeconds: number,
  randomBytes: RandomBytes,
): Promise<IssuedKey | Problem> {
  const old = await lockPermitted(change, address, "rotate");
  if (isProblem(old)) return old;
  const issuer = await readIssuer(change);
  if (issuer !== null && isProblem(issuer)) return issuer;
  const material = makeApiKey(old.kind, randomBytes);
  const context = await readIssueContext(change, old, issuer);
  const decision = decideRotate(old, overlapSeconds, material, context);
  if (isProblem(decision)) return decision;
  await carryOut(change, decision);
  return { key: decision.issued, text: material.key };
}

export async function revokeKey(
  change: Change,
  address: KeyAddress,
  { withIssued }: { withIssued: boolean },
): Promise<Key | Problem> {
  const key = await lockPermitted(change, address, "revoke");
  if (isProblem(key)) return key;
  const issued = withIssued ? await lockIssuedKeys(change.tx, key.id) : [];
  const decision = decideRevoke([key, ...issued], await change.context());
  if (decision.changed.length > 0) await carryOut(change, decision);
  return key;
}

/**
 * Reads the calling key from the database; null for the operator and for sessions. The key directory may lag behind, and
 * a key that has just been revoked or shortened must not issue another one.
 */
async function readIssuer({ tx, principal, now }: Change): Promise<Key | null | Problem> {
  if (principal.kind === "operator" || principal.key.session !== undefined) return null;
  const issuer = await findUnrevokedKey(tx, principal.key.id);
  const hasEnded = issuer === undefined || (issuer.expiresAt !== null && issuer.expiresAt <= now());
  return hasEnded ? keyProblems.invalid : issuer;
}

async function readIssueContext(
  change: Change,
  { environmentId }: { environmentId: string },
  issuer: Key | null,
): Promise<IssueContext> {
  const [context, liveKeyCount] = await Promise.all([
    change.context(),
    countLiveKeys(change.tx, environmentId, change.now()),
  ]);
  return { ...context, issuer, issuers: issuersBy(change.principal, issuer), liveKeyCount };
}

/** Returns the users who can know the secret of a key that a caller issues. */
function issuersBy(principal: Principal, issuer: Key | null): readonly string[] {
  if (issuer !== null) return [...new Set([issuer.userId, ...issuer.issuers])];
  return principal.kind === "operator" ? [] : [principal.key.userId];
}

async function lockPermitted(
  change: Change,
  address: KeyAddress,
  act: "rotate" | "revoke",
): Promise<Key | Problem> {
  const { tx, principal } = change;
  if (!reachesProject(principal, address.projectId)) return noSuchKey;
  await lockKeysOf(tx, [address.projectId]);
  const key = await lockKey(tx, address);
  if (key === undefined) return noSuchKey;
  return (await checkPermitted(change, key, act)) ?? key;
}

async function checkPermitted(
  { tx, principal }: Change,
  subject: Pick<
    Key,
    "organizationId" | "projectId" | "environmentId" | "userId" | "environmentOnly"
  >,
  act: "issue" | "rotate" | "revoke",
): Promise<Problem | undefined> {
  if (principal.kind === "operator" || principal.key.session === undefined)
    return checkMayHandle(principal, subject);
  const user = await findUser(tx, subject);
  const isOfService = user?.kind === "service";
  return (
    checkPersonMayHandle(principal.key, { ...subject, isOfService }, act) ??
    (act === "issue" && !isOfService && !(await isGoverned(tx, subject.userId))
      ? noOwnRole
      : undefined)
  );
}

/**
 * Returns whether roles bound the keys of a user. The role of a person can come from a group, which does not bound keys: a
 * key that the person issued would have all rights in the project. An admin has them anyway, and issues keys of service
 * users.
 */
async function isGoverned(tx: Transaction, userId: string): Promise<boolean> {
  const governed = await tx`select from users where id = ${userId} and governed`;
  return governed.count > 0;
}

const noOwnRole = createProblem(
  "AUTH_002",
  "Your role is that of a group, and groups do not count for keys. Ask an owner for a role of your own.",
);

/** Writes a decision and publishes its messages with the commit. */
export async function carryOut(write: Write, decision: KeyDecision): Promise<void> {
  const { issued, changed } = decision;
  await Promise.all([issued && insertKey(write.tx, issued), updateKeys(write.tx, changed)]);
  recordAudit(write, decision.audit);
  write.publish(decision.messages);
}

export const noSuchKey = createProblem(
  "NOT_FOUND_001",
  "There is no such key in this environment.",
);

/** Returns the owner of a new key. */
async function findOwner(
  tx: Transaction,
  address: { organizationId: string; userId: string },
  { allowDemoUser }: { allowDemoUser: boolean },
): Promise<{ id: string } | Problem> {
  const user = await holdOwner(tx, address);
  if (user === undefined)
    return createProblem("VALIDATION_001", "/user_id must be a user of the project's organization");
  if (allowDemoUser || !isDemoUser(user)) return user;
  return createProblem(
    "VALIDATION_001",
    "/user_id must not be a demo user: production does not start with keys of one",
  );
}
