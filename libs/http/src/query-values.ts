import { type JsonSchema, toJsonSchema } from "@halyard/contracts";
import type { z } from "zod";

type QueryProblem = { problem: string };

type Convert = (text: string) => unknown;

const wholeNumber = /^-?\d{1,15}$/;
const decimalNumber = /^-?\d{1,15}(?:\.\d{1,15})?$/;

const conversions: Readonly<Record<string, Convert>> = {
  integer: (text) => (wholeNumber.test(text) ? Number(text) : text),
  number: (text) => (decimalNumber.test(text) ? Number(text) : text),
  boolean: (text) => (text === "true" ? true : text === "false" ? false : text),
};

/**
 * Returns a function that converts query parameters to the numbers and booleans of the route's schema. A text that is
 * not exactly such a value stays a text, which the schema then rejects.
 */
export function createQueryReader(
  schema: z.ZodObject,
): (query: Readonly<Record<string, unknown>>, target: string) => QueryProblem | { value: object } {
  const properties = (toJsonSchema(schema).properties ?? {}) as Record<string, JsonSchema>;
  const converts = Object.entries(properties).map(
    ([name, { type }]) => [name, conversions[String(type)]] as const,
  );
  return (query, target) => {
    if (!isWellEncoded(target)) return { problem: "the query string is not valid UTF-8" };
    const value: Record<string, unknown> = { ...query };
    for (const [name, convert] of converts) {
      const given = value[name];
      if (Array.isArray(given)) return { problem: `query parameter /${name} must be given once` };
      if (typeof given === "string" && convert !== undefined) value[name] = convert(given);
    }
    return { value };
  };
}

/** Returns whether percent-encoded bytes are valid UTF-8. Otherwise the framework leaves them encoded. */
export function isWellEncoded(target: string): boolean {
  if (!target.includes("%")) return true;
  try {
    decodeURIComponent(target);
    return true;
  } catch {
    return false;
  }
}
