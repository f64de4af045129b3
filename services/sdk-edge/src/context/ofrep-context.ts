import {
  createContext,
  type EvaluationContext,
  emptyContext,
  readAttributes,
} from "@halyard/evaluation";
import { isJsonObject } from "./attributes.ts";

/** The reason why an OFREP request cannot be evaluated, as the protocol defines it. */
type OfrepContextProblem = {
  errorCode: "PARSE_ERROR" | "INVALID_CONTEXT";
  errorDetails: string;
};

const bodyIsNoObject: OfrepContextProblem = {
  errorCode: "PARSE_ERROR",
  errorDetails: "The body must be a JSON object",
};

const contextIsNoObject = invalid("/context must be an object");
const unfitTargetingKey = unfitIdentifier("targetingKey");

function unfitIdentifier(name: string): OfrepContextProblem {
  return invalid(`/context/${name} must be a string or a number`);
}

function invalid(errorDetails: string): OfrepContextProblem {
  return { errorCode: "INVALID_CONTEXT", errorDetails };
}

/**
 * Reads the context of an OFREP request: `{ context: { targetingKey, … } }`. The targeting key is the user's id. If it
 * is present, `id` and `user_id` beside it are ignored, even if they are invalid. OpenFeature contexts can contain
 * objects and dates; values that no rule can read count as missing.
 */
export function readOfrepContext(body: unknown): EvaluationContext | OfrepContextProblem {
  if (!isJsonObject(body)) return bodyIsNoObject;
  const { context } = body;
  if (context === undefined || context === null) return emptyContext;
  if (!isJsonObject(context)) return contextIsNoObject;
  const { targetingKey, ...others } = context;
  if (!isTargetingKey(targetingKey)) return unfitTargetingKey;
  const id = idOf(targetingKey);
  if (id !== undefined) {
    delete others.id;
    delete others.user_id;
  }
  const read = readAttributes(others, "ignore");
  if (!read.ok) return unfitIdentifier(read.problem.attribute);
  const { attributes } = read;
  if (id !== undefined) attributes.set("id", id);
  return attributes.size === 0 ? emptyContext : createContext(attributes);
}

function isTargetingKey(value: unknown): value is string | number | null | undefined {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value === "string" || value === undefined || value === null;
}

/** Returns undefined for an empty targeting key, which counts as missing like every empty id. */
function idOf(targetingKey: string | number | null | undefined): string | undefined {
  if (typeof targetingKey === "number") return JSON.stringify(targetingKey);
  return targetingKey === null || targetingKey === "" ? undefined : targetingKey;
}
