import type { RequestPlan } from "../http/load.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";
import { sendEach } from "./send-each.ts";

/** Requests for schedules and flags, by the numbers of the flags. */
export type Action = "enable" | "disable";

type Requests = {
  count: number;
  /** Number of the first flag; 0 by default. */
  first?: number;
  /** Number of concurrent requests. */
  connections?: number;
};

/**
 * Sets a schedule for each flag, using all schedulers. Returns the milliseconds of each request.
 */
export function setSchedules(
  { schedulers, tenant }: SchedulingSystem,
  options: Requests & { action: Action; at: (number: number) => Date },
): Promise<number[]> {
  const { first = 0, action, at } = options;
  return sendEach({
    ...options,
    urls: schedulers.map(({ url }) => url),
    expectedStatus: 201,
    request: (number) =>
      jsonRequest(tenant.serverKey, {
        method: "POST",
        path: `/api/v1/flags/${tenant.flagIds[first + number]}/environments/${tenant.environmentId}/schedule`,
        body: { [`${action}_at`]: at(first + number).toISOString() },
      }),
  });
}

/** Changes each flag immediately, using all management processes. */
export async function patchFlags(
  { managements, tenant }: SchedulingSystem,
  options: Requests & { action: Action },
): Promise<void> {
  const { first = 0, action } = options;
  await sendEach({
    ...options,
    urls: managements.map(({ url }) => url),
    expectedStatus: 200,
    request: (number) =>
      jsonRequest(tenant.serverKey, {
        method: "PATCH",
        path: `/api/v1/flags/${tenant.flagIds[first + number]}`,
        body: { enabled: action === "enable" },
      }),
  });
}

function jsonRequest(
  key: string,
  { method, path, body }: { method: string; path: string; body: object },
): RequestPlan {
  const headers = { Authorization: `Bearer ${key}`, "Content-Type": "application/json" };
  return { method, path, headers, body: JSON.stringify(body) };
}

type Page = {
  schedules: { status: string; changes: { lateness_ms: number | null }[] }[];
  next_cursor: string | null;
};

const pageSize = 1_000;

/** Returns the lateness of the newest schedules' changes from the API, in milliseconds. */
export async function readLatenesses(
  { schedulers, tenant }: SchedulingSystem,
  count: number,
): Promise<number[]> {
  const latenesses: number[] = [];
  let cursor: string | null = null;
  do {
    const query = new URLSearchParams({ limit: String(Math.min(pageSize, count)) });
    if (cursor !== null) query.set("cursor", cursor);
    const response: Response = await fetch(`${schedulers[0]?.url}/api/v1/schedules?${query}`, {
      headers: { authorization: `Bearer ${tenant.serverKey}` },
    });
    if (response.status !== 200)
      throw new Error(`the list of schedules: ${response.status} ${await response.text()}`);
    const page = (await response.json()) as Page;
    for (const { status, changes } of page.schedules) {
      const late = changes[0]?.lateness_ms ?? null;
      if (status !== "applied" || late === null) throw new Error(`a schedule is ${status}`);
      latenesses.push(late);
    }
    cursor = page.next_cursor;
  } while (cursor !== null && latenesses.length < count);
  return latenesses.slice(0, count);
}
