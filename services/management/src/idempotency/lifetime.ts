/** How long an answer is kept for a request that comes again. */
export const idempotencyLifetimeHours = 24;
