import {
  compileCheck,
  type JsonSchema,
  type RouteContract,
  toJsonSchema,
  wholeDocument,
} from "@halyard/contracts";
import { z } from "zod";
import { createProblem, type Problem } from "./answer.ts";

type Checked<T> = { value: T } | Problem;

type InputChecks<C extends RouteContract<z.ZodObject, z.ZodObject, z.ZodType>> = {
  params(params: unknown): Checked<z.infer<C["params"]>>;
  /** `target` is the unchanged URL of the request, to check its encoding. */
  query(query: Readonly<Record<string, unknown>>, target: string): Checked<z.infer<C["query"]>>;
  body(body: unknown): Checked<z.infer<NonNullable<C["body"]>>>;
};

const noSuchResource = createProblem("NOT_FOUND_001", "No such resource.");

/** Compiles the checks of a route's path, query and body against its contract. */
export function compileInputChecks<
  P extends z.ZodObject,
  Q extends z.ZodObject,
  B extends z.ZodType,
>(contract: RouteContract<P, Q, B>): InputChecks<RouteContract<P, Q, B>> {
  const checkParams = compileCheck(contract.params);
  const readQuery = createQueryReader(contract.query);
  const checkQuery = compileCheck(contract.query);
  const checkBody = contract.body === undefined ? undefined : compileCheck(contract.body);
  return {
    params(params) {
      const checked = checkParams(params);
      // A malformed id has the same status as an unknown one.
      return checked.ok ? { value: checked.value } : noSuchResource;
    },

    query(query, target) {
      const read = readQuery(query, target);
      if ("problem" in read) return createProblem("VALIDATION_001", read.problem);
      const checked = checkQuery(read.value);
      if (checked.ok) return { value: checked.value };
      return createProblem("VALIDATION_001", `query parameter ${checked.problem}`);
    },

    body(body) {
      if (checkBody === undefined)
        return checkNothingSaid(body) ?? { value: undefined as z.infer<B> };
      if (body === undefined && contract.bodyOptional !== true)
        return createProblem(
          "VALIDATION_001",
          `${wholeDocument} is required: the request needs a JSON body`,
        );
      const checked = checkBody(body === undefined ? {} : body);
      return checked.ok
        ? { value: checked.value as z.infer<B> }
        : createProblem("VALIDATION_001", checked.problem);
    },
  };
}

const checkEmpty = compileCheck(z.strictObject({}));

/**
 * Checks the body of a request to a route that takes none. An empty object is accepted, because clients send it. Any
 * other body is rejected, because ignoring it would hide a mistake.
 */
function checkNothingSaid(body: unknown): Problem | undefined {
  const checked = checkEmpty(body === undefined ? {} : body);
  if (checked.ok) return undefined;
  const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
  const problem = isObject ? checked.problem : `${wholeDocument} must be empty`;
  return createProblem("VALIDATION_001", `${problem}: this request takes no body`);
}

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
 * not exactly such a value stays a text, which the schema then rejects. A parameter of an array may be repeated.
 */
function createQueryReader(
  schema: z.ZodObject,
): (query: Readonly<Record<string, unknown>>, target: string) => QueryProblem | { value: object } {
  const properties = (toJsonSchema(schema).properties ?? {}) as Record<string, JsonSchema>;
  const converts = Object.entries(properties).map(
    ([name, { type }]) => [name, conversions[String(type)], type === "array"] as const,
  );
  return (query, target) => {
    if (!isWellEncoded(target)) return { problem: "the query string is not valid UTF-8" };
    const value: Record<string, unknown> = { ...query };
    for (const [name, convert, isRepeatable] of converts) {
      const given = value[name];
      if (isRepeatable) {
        if (typeof given === "string") value[name] = [given];
        continue;
      }
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
