import { call } from "@halyard/testing";
import type { Management } from "../system/system.ts";
import { must, type Tenant } from "../system/tenancy.ts";

/** Counter of responses to writes that did not wait until the write was in effect. */
export const incompleteWaits = "halyard_writes_unconfirmed_total";

/**
 * Runs writes, and what the test observes after their responses. The management process counts the responses that did
 * not wait until the write was in effect. The writes are complete if the count has not changed. No other test may write
 * to this process at the same time.
 */
export async function awaitedWrite<T>(
  management: Management,
  writeAndObserve: () => Promise<T>,
): Promise<{ result: T; isComplete: boolean }> {
  const before = await readMetric(management, incompleteWaits);
  const result = await writeAndObserve();
  const after = await readMetric(management, incompleteWaits);
  return { result, isComplete: after === before };
}

/** Returns the sum of a metric over all labels, or over those that contain a text. */
export async function readMetric(
  process: { metricsUrl: string },
  name: string,
  label = "",
): Promise<number> {
  const text = await (await fetch(`${process.metricsUrl}/metrics`)).text();
  return text
    .split("\n")
    .filter((line) => line.startsWith(`${name}{`) && line.includes(label))
    .reduce((sum, line) => sum + Number(line.split(" ").at(-1)), 0);
}

export async function createFlag(
  management: Management,
  tenant: Tenant,
  key: string,
): Promise<{ id: string; key: string }> {
  return must(`${management.url}/api/v1/flags`, {
    method: "POST",
    key: tenant.serverKey,
    body: { key, name: key },
  });
}

export async function deleteFlag(
  management: Management,
  tenant: Tenant,
  id: string,
): Promise<void> {
  await must(`${management.url}/api/v1/flags/${id}`, { method: "DELETE", key: tenant.serverKey });
}

/** Returns the flag keys in a response of an edge, or undefined while the edge does not serve. */
export async function servedFlags(
  edge: { url: string },
  tenant: Tenant,
): Promise<readonly string[] | undefined> {
  const { status, body } = await call(`${edge.url}/api/v1/sdk/flags`, { key: tenant.clientKey });
  return status === 200 ? Object.keys(body.flags) : undefined;
}
