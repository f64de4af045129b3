import { nowMs } from "../clock.ts";
import type { RequestPlan } from "../http/load.ts";
import type { Tenant } from "./tenant.ts";

/** Returns requests that toggle all flags of a tenant in turn. */
export function toggles({ serverKey, flagIds }: Tenant): RequestPlan[] {
  return [true, false].flatMap((enabled) =>
    flagIds.map((id) => ({
      method: "PATCH",
      path: `/api/v1/flags/${id}`,
      headers: { Authorization: `Bearer ${serverKey}`, "Content-Type": "application/json" },
      body: JSON.stringify({ enabled }),
    })),
  );
}

/** Sends one request and returns the milliseconds until its 200. */
export async function timeRequest(
  managementUrl: string,
  { method, path, headers, body }: RequestPlan,
): Promise<number> {
  const sentMs = nowMs();
  const response = await fetch(managementUrl + path, { method, headers, ...(body && { body }) });
  const text = await response.text();
  if (response.status !== 200) throw new Error(`${method} ${path}: ${response.status} ${text}`);
  return nowMs() - sentMs;
}

/**
 * Toggles a tenant's flags, one request at a time. `stop` returns the time of the slowest request.
 */
export function toggleSteadily(managementUrl: string, tenant: Tenant) {
  const plans = toggles(tenant);
  let running = true;
  async function run(): Promise<number> {
    let slowestMs = 0;
    for (let count = 0; running; count += 1) {
      const plan = plans[count % plans.length] as RequestPlan;
      slowestMs = Math.max(slowestMs, await timeRequest(managementUrl, plan));
    }
    return slowestMs;
  }
  const finished = run();
  finished.catch(() => undefined);
  return {
    stop(): Promise<number> {
      running = false;
      return finished;
    },
  };
}
