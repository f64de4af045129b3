import type { Context } from "@halyard/server-sdk";
import type { EvaluationContext } from "@openfeature/server-sdk";

/**
 * Returns the context for a Halyard client. `targetingKey` becomes the user's id and takes precedence over `id` and
 * `user_id`. Dates become ISO 8601 texts, as in an OFREP request. The client ignores objects and null.
 */
export function halyardContext(context: EvaluationContext): Context {
  const { targetingKey } = context;
  let converted: Record<string, unknown> = context;
  // An empty text is a missing id.
  if (targetingKey !== undefined && targetingKey !== null && targetingKey !== "")
    converted = { ...context, id: targetingKey };
  for (const [name, value] of Object.entries(context)) {
    if (!(value instanceof Date)) continue;
    if (converted === context) converted = { ...context };
    // An invalid date has no text, and JSON has null for it.
    converted[name] = value.toJSON();
  }
  return converted as Context;
}

/** Returns whether a value can be a user's id. Null and an empty text count as a missing id. */
export function isTargetingKey(value: unknown): boolean {
  return (
    value === undefined || value === null || typeof value === "string" || Number.isFinite(value)
  );
}
