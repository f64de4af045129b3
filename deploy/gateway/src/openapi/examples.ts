import { exampleIds, type RouteContract } from "@halyard/contracts";
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
  "Audiences key": { description: "The audience's key", example: "beta" },
  "DELETE Audiences key": {
    description:
      "The audience's key. The example is a placeholder, so that sending it deletes nothing",
    example: "no-audience",
  },
  format: { example: 2 },
  sha256: {
    description: "From `audiences` of the rule set",
    example: "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855",
  },
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
  passkeyId: { description: "From `GET /api/v1/passkeys`", example: "cGFzc2tleS1vZi1ncmFjZQ" },
  invitationId: {
    description: "From the organization's invitations",
    example: exampleIds.confirm,
  },
  requestId: { description: "From `GET /api/v1/change-requests`", example: exampleIds.confirm },
  grantId: { description: "From the organization's grants", example: exampleIds.confirm },
  confirm: {
    description: "The example is a placeholder, so that sending it deletes nothing",
    example: exampleIds.confirm,
  },
};

/** Returns the example of a parameter. The operations of a tag can have their own, and so can those of one method. */
export function parameterExample(
  name: string,
  { method, tag }: Pick<RouteContract, "method" | "tag">,
): JsonObject {
  const found =
    examples[`${method} ${tag} ${name}`] ?? examples[`${tag} ${name}`] ?? examples[name];
  if (found === undefined) throw new Error(`parameter ${name} has no example`);
  return found;
}
