import type { ChangeVia } from "@halyard/contracts";
import type { Transaction } from "@halyard/postgres";

/** The actor, time and cause of a change. */
export type ChangeContext = Attribution & {
  cause: Cause;
  /** The id in all audit entries of one change request. */
  causeId?: string | undefined;
  now: Date;
  /** A new UUID of version 7. */
  newId: () => string;
};

/**
 * The actor of a change, the API key that was used, and how the actor was identified. The key is null for the operator,
 * for sessions and for scheduled changes. `via` is null for an automatic change of a service.
 */
export type Attribution = { actor: Actor; apiKeyId: string | null; via: ChangeVia | null };

/** The requester of a change, by id. */
export type Author = { userId: string; apiKeyId: string | null; via: ChangeVia } | "operator";

/** The recorded actor of a change: a user, the operator or a service. */
export type Actor = { id: string; email: string };

export type Cause = "manual" | "scheduled" | "rollback";

/** Sources of the time and of new ids. */
export type TimeAndIds = { now: () => Date; newId: () => string };

/** Id of actors that are not users: the operator and services. */
const nilId = "00000000-0000-0000-0000-000000000000";

export const operatorActor: Actor = { id: nilId, email: "operator" };

/** Returns the actor of a change that no user requested. */
export const serviceActor = (name: string): Actor => ({ id: nilId, email: name });

export async function readContext(
  tx: Transaction,
  { author, cause }: { author: Author; cause: Cause },
  { now, newId }: TimeAndIds,
): Promise<ChangeContext> {
  if (author === "operator")
    return { actor: operatorActor, apiKeyId: null, via: "operator", cause, now: now(), newId };
  const { userId, ...attribution } = author;
  const actor = await readActor(tx, userId);
  return { actor, ...attribution, cause, now: now(), newId };
}

/**
 * Returns the actor for a user. The lock delays an erasure of the e-mail address until the change is committed;
 * otherwise the address could be recorded after its erasure. The address is empty if the user was removed with a
 * deleted organization.
 */
export async function readActor(tx: Transaction, userId: string): Promise<Actor> {
  const [actor] = await tx<Actor[]>`
    select id, email from users where id = ${userId} for key share`;
  return actor ?? { id: userId, email: "" };
}
