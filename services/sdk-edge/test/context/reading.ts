import { parse } from "node:querystring";
import { compile, type EvaluationContext, type Scalar } from "@halyard/evaluation";
import { isProblem, type Problem } from "@halyard/http";
import type { AttributeMap } from "../../src/context/attributes.ts";
import type { ContextSources } from "../../src/context/user-context.ts";

/** Parses a query string like the router. */
export function asQuery(text: string): Pick<ContextSources, "query" | "target"> {
  return { query: parse(text), target: `/api/v1/sdk/flags?${text}` };
}

/** Returns the text into which Node decodes a header with these characters in UTF-8. */
export function asHeader(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** Returns the attributes, and fails the test on a problem. */
export function attributesOf(read: AttributeMap | Problem | undefined): AttributeMap {
  if (read === undefined) throw new Error("No attributes were read.");
  if (isProblem(read)) throw new Error(`The input was rejected: ${read.message}`);
  return read;
}

/** Returns whether a rule finds an attribute with this value in the context. */
export function holds(context: EvaluationContext, attribute: string, value: Scalar): boolean {
  const flag = compile({
    key: "asks",
    enabled: true,
    rollout_percentage: 100,
    targeting_rules: [{ conditions: [{ attribute, operator: "equals", value }] }],
  });
  return flag.evaluate(context).value;
}
