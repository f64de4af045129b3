import { operatorCategories, operatorNames } from "@halyard/evaluation";
import { z } from "zod";
import { defineRoute } from "./route.ts";

/** An operator of conditions, for authors of rules and for user interfaces. */
export const Operator = z.strictObject({
  name: z.enum(operatorNames),
  description: z.string().min(1),
  category: z.enum(operatorCategories).describe("Interpretation of the condition's value"),
  example: z.string().min(1),
});

export const listOperators = defineRoute({
  service: "management",
  access: "any_key",
  tag: "Flags",
  operationId: "listOperators",
  method: "GET",
  path: "/api/v1/operators",
  summary: "List the operators that conditions of targeting rules can use",
  description: "The list changes only with releases, so caches may store the response for a day.",
  cacheControl: `private, max-age=${24 * 60 * 60}`,
  revalidated: true,
  success: {
    status: 200,
    description: "All operators, in the order of their categories",
    body: z.strictObject({ operators: z.array(Operator) }),
  },
});
