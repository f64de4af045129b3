import type { Client, EvaluationDetails, JsonValue } from "@openfeature/server-sdk";
import type { Evaluation } from "./scenarios.ts";

/** Evaluates a flag with the method for its type. */
export function evaluate(
  client: Client,
  { type, flagKey, fallback, context }: Evaluation,
): Promise<EvaluationDetails<JsonValue>> {
  switch (type) {
    case "boolean":
      return client.getBooleanDetails(flagKey, fallback as boolean, context);
    case "string":
      return client.getStringDetails(flagKey, fallback as string, context);
    case "number":
      return client.getNumberDetails(flagKey, fallback as number, context);
    case "object":
      return client.getObjectDetails(flagKey, fallback, context);
  }
}
