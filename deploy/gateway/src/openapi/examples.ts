import { exampleIds } from "@halyard/contracts";
import type { JsonObject } from "./components.ts";

/** Examples of required parameters. The flag is the one that the example of `createFlag` creates. */
const flagKey = {
  description: "The flag's key",
  example: "new-checkout",
};

const placeholder = (example: string, source: string) => ({
  description: `The example is a placeholder. Use an id from ${source}`,
  example,
});

/** Describes an id of the demo. With `npm start`, the gateway replaces the placeholder. */
const demoId = (example: string, source: string) => ({
  description: `From ${source}. The example is the demo's id under \`npm start\`, and a placeholder in production`,
  example,
});

const listOf = (resources: string) => `the list of ${resources}`;
const flag = placeholder(exampleIds.flagId, "`POST` or `GET /api/v1/flags`");
const environment = demoId(exampleIds.environmentId, listOf("the project's environments"));

const examples: Readonly<Record<string, JsonObject>> = {
  key: flagKey,
  id: flag,
  flagId: flag,
  envId: environment,
  environmentId: environment,
  organizationId: demoId(exampleIds.organizationId, listOf("organizations")),
  userId: demoId(exampleIds.userId, listOf("the organization's users")),
  projectId: demoId(exampleIds.projectId, listOf("the organization's projects")),
  keyId: placeholder(exampleIds.keyId, listOf("the environment's keys")),
  webhookId: placeholder(exampleIds.webhookId, listOf("the project's webhooks")),
  deliveryId: placeholder(exampleIds.deliveryId, listOf("the webhook's deliveries")),
  confirm: {
    description: "The example is a placeholder, so that sending it deletes nothing",
    example: exampleIds.confirm,
  },
};

export function parameterExample(name: string): JsonObject {
  const found = examples[name];
  if (found === undefined) throw new Error(`parameter ${name} has no example`);
  return found;
}
