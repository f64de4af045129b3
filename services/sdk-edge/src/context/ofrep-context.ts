import {
  createContext,
  type EvaluationContext,
  emptyContext,
  readAttributes,
} from "@halyard/evaluation";
import { isJsonObject } from "./attribute-map.ts";

/** Why an OFREP request cannot be evaluated, in OFREP's own words. */
export type OfrepContextProblem = {
  errorCode: "PARSE_ERROR" | "INVALID_CONTEXT";
  errorDetails: string;
};

const bodyIsNoObject: OfrepContextProblem = {
  errorCode: "PARSE_ERROR",
  errorDetails: "The body must be a JSON object",
};

const contextIsNoObject = invalid("/context must be an object");
const unfitTargetingKey = invalid("/context/targetingKey must be a string or a number");
const unfitId = invalid("/context/id must be a string or a number");

function invalid(errorDetails: string): OfrepContextProblem {
  return { errorCode: "INVALID_CONTEXT", errorDetails };
}

/**
 * Who asks, from the body of an OFREP request: `{ context: { targetingKey, … } }`. The targeting key
 * is the user's id, before an attribute of that name. OpenFeature lets contexts hold objects and dates;
 * what no rule can ask about counts as missing.
 */
export function readOfrepContext(body: unknown): EvaluationContext | OfrepContextProblem {
  if (!isJsonObject(body)) return bodyIsNoObject;
  const { context } = body;
  if (context === undefined || context === null) return emptyContext;
  if (!isJsonObject(context)) return contextIsNoObject;
  const { targetingKey } = context;
  if (!isTargetingKey(targetingKey)) return unfitTargetingKey;

  const read = readAttributes(context, "ignore");
  if (!read.ok) return unfitId;
  const { attributes } = read;
  attributes.delete("targetingKey");
  // An empty one is none, as every empty id.
  if (typeof targetingKey === "string" && targetingKey !== "") attributes.set("id", targetingKey);
  else if (typeof targetingKey === "number") attributes.set("id", JSON.stringify(targetingKey));
  return attributes.size === 0 ? emptyContext : createContext(attributes);
}

function isTargetingKey(value: unknown): value is string | number | null | undefined {
  if (typeof value === "number") return Number.isFinite(value);
  return typeof value === "string" || value === undefined || value === null;
}
