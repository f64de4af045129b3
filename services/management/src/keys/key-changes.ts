import { keyRefusals, makeApiKey } from "@halyard/api-keys";
import { type IssueKey, isDemoUser } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";
import { isRefusal, type Refusal, refuse } from "@halyard/service";
import type { z } from "zod";
import { attributionOf, type ChangeContext } from "../access/change-context.ts";
import { type Principal, reachesProject } from "../access/principal.ts";
import { insertAuditEntries } from "../audit/audit-store.ts";
import { noSuchEnvironment } from "../environments/environment.ts";
import type { Write } from "../outbox/write.ts";
import { decideIssue, decideRevoke, decideRotate, type KeyDecision } from "./decide-key.ts";
import { checkMayHandle, type Key, type KeyAddress } from "./key.ts";
import {
  findUnrevokedKey,
  holdKeyPlace,
  holdOwner,
  insertKey,
  lockIssuedKeys,
  lockKey,
  lockKeysOf,
  updateKeys,
} from "./key-store.ts";

/** The use cases of API keys. Each runs inside a write's transaction. */
export type KeyChanges = {
  issue(
    write: Write,
    principal: Principal,
    place: { projectId: string; environmentId: string },
    request: z.infer<typeof IssueKey>,
  ): Promise<IssuedKey | Refusal>;
  rotate(
    write: Write,
    principal: Principal,
    place: KeyAddress,
    overlapSeconds: number,
  ): Promise<IssuedKey | Refusal>;
  revoke(
    write: Write,
    principal: Principal,
    place: KeyAddress,
    options: { withIssued: boolean },
  ): Promise<Key | Refusal>;
};

/** A new key and, for the one answer that carries it, its text. */
export type IssuedKey = { key: Key; text: string };

export function createKeyChanges(options: {
  now: () => Date;
  newId: () => string;
  randomBytes: (size: number) => Buffer;
  allowDemoUser: boolean;
}): KeyChanges {
  async function contextOf(write: Write, principal: Principal): Promise<ChangeContext> {
    const attribution = await attributionOf(write.tx, principal);
    return { ...attribution, cause: "manual", now: options.now(), newId: options.newId };
  }

  /**
   * Reads the calling key as it is now. The directory can be behind, and a key that was revoked or shortened a
   * moment ago must not issue another one.
   */
  async function issuerOf(write: Write, principal: Principal): Promise<Key | null | Refusal> {
    if (principal.kind === "operator") return null;
    const issuer = await findUnrevokedKey(write.tx, principal.key.id);
    const hasEnded =
      issuer === undefined || (issuer.expiresAt !== null && issuer.expiresAt <= options.now());
    return hasEnded ? keyRefusals.invalid : issuer;
  }

  return {
    async issue(write, principal, { projectId, environmentId }, request) {
      if (!reachesProject(principal, projectId)) return noSuchEnvironment();
      await lockKeysOf(write.tx, [projectId]);
      const place = await holdKeyPlace(write.tx, { projectId, environmentId });
      if (place === undefined) return noSuchEnvironment();
      const environmentOnly = request.environment_only ?? false;
      const subject = { ...place, userId: request.user_id, environmentOnly };
      const refusal = checkMayHandle(principal, subject);
      if (refusal !== undefined) return refusal;
      const ownerAddress = { organizationId: place.organizationId, userId: request.user_id };
      const owner = await findOwner(write.tx, ownerAddress, options);
      if (isRefusal(owner)) return owner;
      const issuer = await issuerOf(write, principal);
      if (issuer !== null && isRefusal(issuer)) return issuer;
      const material = makeApiKey(request.kind, options.randomBytes);
      const context = { ...(await contextOf(write, principal)), issuer };
      const decision = decideIssue(place, { ...request, user_id: owner.id }, material, context);
      if (isRefusal(decision)) return decision;
      await carryOut(write, decision);
      return { key: decision.issued, text: material.key };
    },

    async rotate(write, principal, address, overlapSeconds) {
      const old = await lockPermitted(write, principal, address);
      if (isRefusal(old)) return old;
      const issuer = await issuerOf(write, principal);
      if (issuer !== null && isRefusal(issuer)) return issuer;
      const material = makeApiKey(old.kind, options.randomBytes);
      const context = { ...(await contextOf(write, principal)), issuer };
      const decision = decideRotate(old, overlapSeconds, material, context);
      if (isRefusal(decision)) return decision;
      await carryOut(write, decision);
      return { key: decision.issued, text: material.key };
    },

    async revoke(write, principal, address, { withIssued }) {
      const key = await lockPermitted(write, principal, address);
      if (isRefusal(key)) return key;
      const issued = withIssued ? await lockIssuedKeys(write.tx, key.id) : [];
      const decision = decideRevoke([key, ...issued], await contextOf(write, principal));
      if (decision.changed.length > 0) await carryOut(write, decision);
      return key;
    },
  };
}

async function lockPermitted(
  write: Write,
  principal: Principal,
  address: KeyAddress,
): Promise<Key | Refusal> {
  if (!reachesProject(principal, address.projectId)) return noSuchKey();
  await lockKeysOf(write.tx, [address.projectId]);
  const key = await lockKey(write.tx, address);
  if (key === undefined) return noSuchKey();
  return checkMayHandle(principal, key) ?? key;
}

/** Writes a decision, and publishes its messages with the commit. */
export async function carryOut(write: Write, decision: KeyDecision): Promise<void> {
  const { issued, changed } = decision;
  await Promise.all([
    issued && insertKey(write.tx, issued),
    updateKeys(write.tx, changed),
    insertAuditEntries(write.tx, decision.audit),
  ]);
  write.publish(decision.messages);
}

export function noSuchKey(): Refusal {
  return refuse("NOT_FOUND_001", "There is no such key in this environment.");
}

/** Returns the user that a new key belongs to. */
export async function findOwner(
  tx: Transaction,
  address: { organizationId: string; userId: string },
  { allowDemoUser }: { allowDemoUser: boolean },
): Promise<{ id: string } | Refusal> {
  const user = await holdOwner(tx, address);
  if (user === undefined)
    return refuse("VALIDATION_001", "/user_id must be a user of the project's organization");
  if (allowDemoUser || !isDemoUser(user)) return user;
  return refuse(
    "VALIDATION_001",
    "/user_id must not be a demo user: production does not start with keys of one",
  );
}
