import { type DirectoryKey, keyRefusals } from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";

/** The project and the webhook that a path names, as far as the key may know of them. */
export type WebhookPlace = { projectId: string; webhookId: string };

const noSuchProject = refuse("NOT_FOUND_001", "There is no such project.");
export const noSuchWebhook = refuse("NOT_FOUND_001", "There is no such webhook in this project.");

/** Webhooks belong to the whole project, so `environment_only` keys are rejected. Other projects are 404 first. */
export function checkMayUseWebhooks(
  key: DirectoryKey,
  params: { projectId: string },
): Refusal | undefined {
  if (params.projectId.toLowerCase() !== key.projectId) return noSuchProject;
  return key.environmentOnly ? keyRefusals.otherEnvironment : undefined;
}

/** Ids are compared in lower case. */
export function placeOf(
  key: DirectoryKey,
  params: { projectId: string; webhookId: string },
): WebhookPlace | Refusal {
  const refusal = checkMayUseWebhooks(key, params);
  if (refusal !== undefined) return refusal;
  return { projectId: key.projectId, webhookId: params.webhookId.toLowerCase() };
}
