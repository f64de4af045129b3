import type { RequestPlan } from "../http/load.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";
import { sendEach } from "./send-each.ts";

/** What people ask of schedules and flags, by the flags' numbers. */
export type Action = "enable" | "disable";

type Requests = {
  count: number;
  /** The number of the first flag; 0 unless told. */
  first?: number;
  /** Requests under way at the same time. */
  connections?: number;
};

/** Sets a schedule for each flag, at all schedulers. Answers how many milliseconds each took. */
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
      asked(tenant.serverKey, {
        method: "POST",
        path: `/api/v1/flags/${tenant.flagIds[first + number]}/environments/${tenant.environmentId}/schedule`,
        body: { [`${action}_at`]: at(first + number).toISOString() },
      }),
  });
}

/** Changes each flag at once, at all managements. */
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
      asked(tenant.serverKey, {
        method: "PATCH",
        path: `/api/v1/flags/${tenant.flagIds[first + number]}`,
        body: { enabled: action === "enable" },
      }),
  });
}

function asked(
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

/** How late the newest schedules' changes were, in milliseconds, as the API tells it. */
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
