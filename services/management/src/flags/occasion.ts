/** Who makes a change, when, and by which way. */
export type Occasion = {
  actor: Actor;
  cause: Cause;
  now: Date;
  /** A new UUID of version 7. */
  newId: () => string;
};

/** The user to whom a change is attributed. */
export type Actor = { id: string; email: string };

export type Cause = "manual" | "scheduled" | "rollback";

/**
 * When a change of a flag counts as made: now, but always later than what came before, so that a
 * flag's events have timestamps of their own, in order, on whatever replica's clock.
 */
export function momentAfter(previous: Date, now: Date): Date {
  return new Date(Math.max(now.getTime(), previous.getTime() + 1));
}
