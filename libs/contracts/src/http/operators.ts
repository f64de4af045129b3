import { operatorCategories, operatorNames } from "@halyard/evaluation";
import { z } from "zod";
import { defineRoute } from "./route.ts";

/** What a condition can ask of an attribute, for whoever writes rules or builds a page for it. */
export const Operator = z.strictObject({
  name: z.enum(operatorNames),
  description: z.string().min(1),
  category: z.enum(operatorCategories).describe("What the condition's value is read as"),
  example: z.string().min(1),
});
export type Operator = z.infer<typeof Operator>;

export const listOperators = defineRoute({
  service: "management",
  access: "any_key",
  tag: "Flags",
  operationId: "listOperators",
  method: "GET",
  path: "/api/v1/operators",
  summary: "List the operators that conditions of targeting rules can use",
  description: "The list changes with releases only, so the answer may be kept for a day.",
  cacheControl: `private, max-age=${24 * 60 * 60}`,
  revalidated: true,
  success: {
    status: 200,
    description: "All operators, in the order of their categories",
    body: z.strictObject({ operators: z.array(Operator) }),
  },
});
