import { exampleIds, type RouteContract } from "@halyard/contracts";
import type { JsonObject } from "./components.ts";

/** Examples of required parameters. The flag is the one that the example of `createFlag` creates. */
const flagKey = {
  description: "The flag's key",
  example: "new-checkout",
};

const placeholder = (example: string, source: string) => ({
  description: `The example is a placeholder: take the id from ${source}`,
  example,
});

const listOf = (resources: string) => `the list of ${resources}`;
const flag = placeholder(exampleIds.flagId, "`GET /api/v1/flags`");
const environment = placeholder(exampleIds.environmentId, listOf("the project's environments"));

const examples: Readonly<Record<string, JsonObject>> = {
  key: flagKey,
  id: flag,
  flagId: flag,
  envId: environment,
  environmentId: environment,
  organizationId: placeholder(exampleIds.organizationId, listOf("organizations")),
  userId: placeholder(exampleIds.userId, listOf("the organization's users")),
  projectId: placeholder(exampleIds.projectId, listOf("the organization's projects")),
  keyId: placeholder(exampleIds.keyId, listOf("the environment's keys")),
  webhookId: placeholder(exampleIds.webhookId, listOf("the project's webhooks")),
  deliveryId: placeholder(exampleIds.deliveryId, listOf("the webhook's deliveries")),
};

export function parameterExample(name: string, { path }: RouteContract): JsonObject {
  // A deletion is confirmed with the id of what it deletes, which is the last one in the path.
  const [source = name] = name === "confirm" ? (path.match(/\w+$/) ?? []) : [];
  const found = examples[source];
  if (found === undefined) throw new Error(`parameter ${name} has no example`);
  return found;
}
