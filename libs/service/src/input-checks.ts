import { compileCheck, type RouteContract, wholeDocument } from "@halyard/contracts";
import { z } from "zod";
import { createProblem, type Problem } from "./answer.ts";
import { noSuchRoute } from "./error-answers.ts";
import { createQueryReader } from "./query-values.ts";

type Checked<T> = { value: T } | Problem;

export type InputChecks<C extends RouteContract<z.ZodObject, z.ZodObject, z.ZodType>> = {
  params(params: unknown): Checked<z.infer<C["params"]>>;
  /** `target` is the request's URL as it came, to see whether it was encoded well. */
  query(query: Readonly<Record<string, unknown>>, target: string): Checked<z.infer<C["query"]>>;
  body(body: unknown): Checked<z.infer<NonNullable<C["body"]>>>;
};

/** Compiles, once per route, what its contract says about path, query and body. */
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
      // An id that cannot be one is answered like an id that nothing has.
      return checked.ok ? { value: checked.value } : noSuchRoute;
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
 * A body where the route takes none. An empty object says nothing and will do, as clients send it;
 * whatever says something was meant for something else, and must not be ignored.
 */
function checkNothingSaid(body: unknown): Problem | undefined {
  const checked = checkEmpty(body === undefined ? {} : body);
  if (checked.ok) return undefined;
  const isObject = typeof body === "object" && body !== null && !Array.isArray(body);
  const problem = isObject ? checked.problem : `${wholeDocument} must be empty`;
  return createProblem("VALIDATION_001", `${problem}: this request takes no body`);
}
