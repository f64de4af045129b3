/** The author, time and cause of a change. */
export type Occasion = Attribution & {
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
