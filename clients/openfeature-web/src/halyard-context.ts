import type { Context } from "@halyard/browser-sdk";
import type { EvaluationContext } from "@openfeature/web-sdk";

/**
 * Returns the context for a Halyard client. `targetingKey` is the user's id, so `id` and `user_id` beside it are
 * ignored. Dates become ISO 8601 texts, as in an OFREP request. The client ignores objects and null.
 */
export function halyardContext(context: EvaluationContext): Context {
  const { targetingKey, ...attributes } = context;
  const converted: Record<string, unknown> = attributes;
  // An invalid date has no text, and JSON has null for it.
  for (const [name, value] of Object.entries(attributes))
    if (value instanceof Date) converted[name] = value.toJSON();
  if (targetingKey === undefined || targetingKey === null || targetingKey === "")
    return converted as Context;
  return { ...converted, id: targetingKey, user_id: undefined } as Context;
}
