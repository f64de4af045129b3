import type { DirectoryKey } from "@halyard/api-keys";
import type { Transaction } from "@halyard/postgres";
import type { Principal } from "./principal.ts";

/** The author, time and cause of a change. */
export type ChangeContext = Attribution & {
  cause: Cause;
  now: Date;
  /** A new UUID of version 7. */
  newId: () => string;
};

/** The actor of a change, and the API key used; null for the operator and for scheduled changes. */
export type Attribution = { actor: Actor; apiKeyId: string | null };

/** The author of a change, whose e-mail address is not read yet. */
export type Author = { userId: string; apiKeyId: string | null };

/** The author of a change. */
export type Actor = { id: string; email: string };

export type Cause = "manual" | "scheduled" | "rollback";

/**
 * When a change of a flag counts as made: now, but always later than what came before, so that a
 * flag's events have timestamps of their own, in order, on whatever replica's clock.
 */
export function momentAfter(previous: Date, now: Date): Date {
  return new Date(Math.max(now.getTime(), previous.getTime() + 1));
}

/** The id of actors that are not users: the operator and services. */
const nilId = "00000000-0000-0000-0000-000000000000";

export const operatorActor: Actor = { id: nilId, email: "operator" };

/** Returns the actor of a change that no user requested. */
export const serviceActor = (name: string): Actor => ({ id: nilId, email: name });

/** The user of the API key and the key itself, or the operator. */
export async function attributionOf(tx: Transaction, principal: Principal): Promise<Attribution> {
  if (principal.kind === "operator") return { actor: operatorActor, apiKeyId: null };
  const { key } = principal;
  return { actor: await readActor(tx, key.userId), apiKeyId: key.id };
}

export const authorOf = (key: DirectoryKey): Author => ({ userId: key.userId, apiKeyId: key.id });

/**
 * Returns the user to whom a change is attributed. The lock makes an erasure of the e-mail address wait until the
 * change is committed. The address is empty if the user was removed with a deleted organization.
 */
export async function readActor(tx: Transaction, userId: string): Promise<Actor> {
  const [actor] = await tx<Actor[]>`
    select id, email from users where id = ${userId} for key share`;
  return actor ?? { id: userId, email: "" };
}
