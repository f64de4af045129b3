import { exampleIds } from "@halyard/contracts";
import type { JsonObject } from "./components.ts";

/** Examples of required parameters. The flag is the one that the example of `createFlag` creates. */
const flagKey = {
  description: "The flag's key",
  example: "new-checkout",
};

/**
 * Describes an id. Under `npm start`, the process of the documentation replaces the placeholder. `except` names the
 * requests whose examples keep it, so that sending them ends nothing.
 */
const idOf = (example: string, source: string, { except }: { except?: string } = {}) => ({
  description: `From ${source}. The example is an id of the demo under \`npm start\`, ${except === undefined ? "" : `except ${except}, `}and a placeholder in production`,
  example,
});

const inDeletions = { except: "in deletions" };

const listOf = (resources: string) => `the list of ${resources}`;
const flag = idOf(exampleIds.flagId, "`POST` or `GET /api/v1/flags`", inDeletions);
const environment = idOf(exampleIds.environmentId, listOf("the project's environments"));

const examples: Readonly<Record<string, JsonObject>> = {
  key: flagKey,
  format: { example: 2 },
  id: flag,
  flagId: flag,
  envId: environment,
  environmentId: environment,
  organizationId: idOf(exampleIds.organizationId, listOf("organizations")),
  userId: idOf(exampleIds.userId, listOf("the organization's users")),
  projectId: idOf(exampleIds.projectId, listOf("the organization's projects")),
  keyId: idOf(exampleIds.keyId, listOf("the environment's keys"), {
    except: "where the request ends a key",
  }),
  webhookId: idOf(exampleIds.webhookId, listOf("the project's webhooks"), inDeletions),
  deliveryId: idOf(exampleIds.deliveryId, listOf("the webhook's deliveries")),
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
