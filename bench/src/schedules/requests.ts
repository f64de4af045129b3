import { openClient } from "../http/raw-connection.ts";
import { jsonRequest, type RequestPlan } from "../http/requests.ts";
import { repeatAtOnce } from "../processes/arrivals.ts";
import { callApi } from "../system/call-api.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

export type Action = "enable" | "disable";

type Requests = {
  count: number;
  action: Action;
  /** Number of concurrent requests; `clients` by default. */
  connections?: number;
};

export const clients = 16;

/** Sets a schedule for each flag, using all schedulers. Returns the milliseconds of each request. */
export function setSchedules(
  { schedulers, tenant }: SchedulingSystem,
  { action, at, ...options }: Requests & { at: (number: number) => Date },
): Promise<number[]> {
  const { serverKey, environmentId, flagIds } = tenant;
  const urls = schedulers.map(({ url }) => url);
  return sendEach({ ...options, urls, expectedStatus: 201 }, (number) =>
    jsonRequest(serverKey, {
      method: "POST",
      path: `/api/v1/flags/${flagIds[number]}/environments/${environmentId}/schedule`,
      body: { [`${action}_at`]: at(number).toISOString() },
    }),
  );
}

/** Changes each flag immediately, using all management processes. */
export async function patchFlags(
  { managements, tenant }: SchedulingSystem,
  { action, ...options }: Requests,
): Promise<void> {
  const urls = managements.map(({ url }) => url);
  const body = { enabled: action === "enable" };
  await sendEach({ ...options, urls, expectedStatus: 200 }, (number) => {
    const path = `/api/v1/flags/${tenant.flagIds[number]}`;
    return jsonRequest(tenant.serverKey, { method: "PATCH", path, body });
  });
}

/** Sends a number of requests over a few connections to all URLs. Returns the milliseconds of each one. */
async function sendEach(
  options: { urls: readonly string[]; count: number; expectedStatus: number; connections?: number },
  request: (number: number) => RequestPlan,
): Promise<number[]> {
  const { urls, count, expectedStatus, connections: atOnce = clients } = options;
  const open = Array.from({ length: atOnce }, (_, index) =>
    openClient(urls[index % urls.length] as string),
  );
  const connections = await Promise.all(open);
  const free = [...connections];
  const tookMs: number[] = [];
  await repeatAtOnce({ count, atOnce }, async (number) => {
    const connection = free.pop() as (typeof free)[number];
    const sentMs = performance.now();
    const { status, bytes } = await connection.request(request(number));
    tookMs.push(performance.now() - sentMs);
    if (status !== expectedStatus) throw new Error(`unexpected response: ${bytes.toString()}`);
    free.push(connection);
  });
  for (const connection of connections) connection.close();
  return tookMs;
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
    const path = `${schedulers[0]?.url}/api/v1/schedules?${query}`;
    const page: Page = await callApi<Page>(path, { token: tenant.serverKey });
    for (const { status, changes } of page.schedules) {
      const late = changes[0]?.lateness_ms ?? null;
      if (status !== "applied" || late === null) throw new Error(`a schedule is ${status}`);
      latenesses.push(late);
    }
    cursor = page.next_cursor;
  } while (cursor !== null && latenesses.length < count);
  return latenesses.slice(0, count);
}
