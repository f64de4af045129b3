import { parse } from "node:querystring";
import { compile, type EvaluationContext, type Scalar } from "@halyard/evaluation";
import { isProblem, type Problem } from "@halyard/service";
import type { AttributeMap } from "../../src/context/attributes.ts";
import type { ContextSources } from "../../src/context/user-context.ts";

/** A query string as the router passes it on. */
export function asQuery(text: string): Pick<ContextSources, "query" | "target"> {
  return { query: parse(text), target: `/api/v1/sdk/flags?${text}` };
}

/** The text that Node makes of a header with these characters in UTF-8. */
export function asHeader(text: string): string {
  return Buffer.from(text).toString("latin1");
}

/** What was read, where a refusal would be a failure. */
export function attributesOf(read: AttributeMap | Problem | undefined): AttributeMap {
  if (read === undefined) throw new Error("nothing was read");
  if (isProblem(read)) throw new Error(`it was refused: ${read.message}`);
  return read;
}

/** Whether the context has an attribute with this value, as a flag's rule finds out. */
export function knows(context: EvaluationContext, attribute: string, value: Scalar): boolean {
  const flag = compile({
    key: "asks",
    enabled: true,
    rollout_percentage: 100,
    targeting_rules: [{ conditions: [{ attribute, operator: "equals", value }] }],
  });
  return flag.evaluate(context).value;
}
