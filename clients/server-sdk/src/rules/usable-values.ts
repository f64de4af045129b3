import { isRecord } from "./is-record.ts";
import type { FlagRules } from "./parse-rules.ts";

/**
 * Maximum depth of objects. The service allows 20 levels. Deeper values would exhaust the stack when they are compared.
 */
const maxLevels = 64;

/**
 * Returns whether the values of a flag have its type, and everything that selects them has the form that the evaluation
 * expects. Keys of variations that do not exist are allowed: they yield the caller's default.
 */
export function haveUsableValues(flag: FlagRules): boolean {
  const { value_type: type = "boolean", variations, serve, targeting_rules: rules } = flag;
  if (!isServeIfPresent(serve)) return false;
  if (!rules.every((rule) => isServeIfPresent(rule?.serve))) return false;
  const isValue = valueChecks[type];
  if (isValue === undefined) return variations === undefined;
  return (
    variations !== undefined &&
    variations.length > 0 &&
    variations.every((variation) => typeof variation?.key === "string" && isValue(variation.value))
  );
}

/** Boolean flags have no variations. */
const valueChecks: Readonly<
  Record<NonNullable<FlagRules["value_type"]>, ((value: unknown) => boolean) | undefined>
> = {
  boolean: undefined,
  string: (value) => typeof value === "string",
  number: Number.isFinite,
  object: (value) => isRecord(value) && hasLevels(value, maxLevels),
};

function isServeIfPresent(serve: unknown): boolean {
  if (serve === undefined) return true;
  if (!isRecord(serve)) return false;
  return "split" in serve
    ? Array.isArray(serve.split) && serve.split.every(isShare)
    : typeof serve.variation === "string";
}

function isShare(share: unknown): boolean {
  return isRecord(share) && Array.isArray(share.ranges) && share.ranges.every(isRange);
}

function isRange(range: unknown): boolean {
  return Array.isArray(range) && range.length === 2 && range.every(Number.isInteger);
}

/** Returns whether a JSON value has at most this number of levels. */
function hasLevels(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return true;
  return levels > 0 && Object.values(value).every((member) => hasLevels(member, levels - 1));
}
