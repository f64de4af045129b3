import { awaitCounted } from "../checks/usage-agreement.ts";
import type { System } from "../system/system.ts";
import { must, type Tenant } from "../system/tenancy.ts";
import type { CreatedFlag } from "../traffic/changes.ts";
import { presentTime } from "./scheduler-clock.ts";
import type { WebhookStory } from "./webhook-story.ts";

/** State beside flags and webhooks that a backup contains: schedules and usage. */
export const hourMs = 3_600_000;

/** Schedules that the flag, which is on, is turned off. */
export async function scheduleInAnHour(
  system: System,
  story: WebhookStory,
  flag = firstOf(story),
): Promise<void> {
  const disable_at = new Date((await presentTime(system.sql)).getTime() + hourMs);
  const [scheduler] = system.schedulers;
  await must(`${scheduler?.url}${schedulePath(story, flag)}`, {
    method: "POST",
    key: story.tenant.serverKey,
    body: { disable_at },
  });
}

export async function readSchedule(
  { schedulers }: System,
  story: WebhookStory,
  flag = firstOf(story),
) {
  const [scheduler] = schedulers;
  return must(`${scheduler?.url}${schedulePath(story, flag)}`, { key: story.tenant.serverKey });
}

function schedulePath({ tenant }: WebhookStory, { id }: CreatedFlag): string {
  return `/api/v1/flags/${id}/environments/${tenant.environmentId}/schedule`;
}

function firstOf({ flags: [flag] }: WebhookStory): CreatedFlag {
  if (flag === undefined) throw new Error("the story has no flag");
  return flag;
}

/** Sends SDK requests, and waits until all of them are counted. Returns the number of requests so far. */
export async function useFlags(
  system: System,
  tenant: Tenant,
  { requests, before = 0 }: { requests: number; before?: number },
): Promise<number> {
  const [edge] = system.edges;
  for (let sent = 0; sent < requests; sent += 1)
    await must(`${edge?.url}/api/v1/sdk/flags`, { key: tenant.clientKey });
  return awaitCounted(system, tenant, { atLeast: before + requests });
}
