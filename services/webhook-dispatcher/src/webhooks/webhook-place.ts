import type { DirectoryKey } from "@halyard/api-keys";
import { type Refusal, refuse } from "@halyard/service";

/** The project and the webhook that a path names, as far as the key may know of them. */
export type WebhookPlace = { projectId: string; webhookId: string };

export const noSuchProject = refuse("NOT_FOUND_001", "There is no such project.");
export const noSuchWebhook = refuse("NOT_FOUND_001", "There is no such webhook in this project.");

export function ownsProject(key: DirectoryKey, params: { projectId: string }): boolean {
  return params.projectId.toLowerCase() === key.projectId;
}

/** Ids are compared as we write them. That a project is another's is not revealed. */
export function placeOf(
  key: DirectoryKey,
  params: { projectId: string; webhookId: string },
): WebhookPlace | Refusal {
  if (!ownsProject(key, params)) return noSuchProject;
  return { projectId: key.projectId, webhookId: params.webhookId.toLowerCase() };
}
