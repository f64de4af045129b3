import { setTimeout as delay } from "node:timers/promises";
import { usageStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { withManager } from "../system/disturbances.ts";
import type { System } from "../system/system.ts";
import { must, type Tenant } from "../system/tenancy.ts";
import type { Sent } from "../traffic/usage-traffic.ts";

/**
 * Compares the sent requests with the counted ones: by organization, by environment and endpoint, and by flag. Each
 * check returns descriptions of the violations.
 */

/** Statuses of requests that are not counted: without a valid key, a free slot or remaining requests of the month. */
const usesNothing = new Set([401, 429, 503]);

/** Time within which an edge repeats a message that it believes lost. */
const repetitionsWithinMs = 1_500;

export const counted = (sent: readonly Sent[]): Sent[] =>
  sent.filter(
    ({ endpoint, status }) =>
      endpoint !== undefined && status !== undefined && !usesNothing.has(status),
  );

export const unanswered = (sent: readonly Sent[]): Sent[] =>
  sent.filter(({ endpoint, status }) => endpoint !== undefined && status === undefined);

/** Returns the used requests, as the API reports them to the organization. */
export async function requestsUsed(system: System, tenant: Tenant): Promise<number> {
  const [metering] = system.meterings;
  const usage = await must(`${metering?.url}/api/v1/usage`, { key: tenant.serverKey });
  return usage.requests.used;
}

/**
 * Waits until at least as many requests are counted as were sent, and until no message that adds to them is pending.
 */
export async function awaitCounted(
  system: System,
  tenant: Tenant,
  options: { atLeast: number; withinMs?: number },
): Promise<number> {
  const { atLeast, withinMs = 30_000 } = options;
  await eventually(
    async () => {
      const used = await requestsUsed(system, tenant);
      if (used < atLeast) throw new Error(`${used} of ${atLeast} requests are counted`);
      return true;
    },
    { withinMs, because: "every request is counted" },
  );
  await delay(repetitionsWithinMs);
  await eventually(async () => (await messagesOnTheirWay(system.nats.url)) === 0, {
    withinMs,
    because: "no message is pending",
  });
  return requestsUsed(system, tenant);
}

async function messagesOnTheirWay(natsUrl: string): Promise<number> {
  return withManager(natsUrl, async ({ consumers }) => {
    const { name, recorded } = usageStream;
    const consumer = await consumers.info(name, recorded.consumer);
    return consumer.num_pending + consumer.num_ack_pending;
  });
}

/**
 * Returns all differences between sent and counted requests. A request without a response must not be counted: this
 * check runs only if no edge is killed, and an edge that stops responds to every request that it has received.
 */
export async function faultsOfUsage(
  system: System,
  tenant: Tenant,
  sent: readonly Sent[],
): Promise<string[]> {
  const admitted = counted(sent);
  const faults: string[] = [];
  const used = await awaitCounted(system, tenant, { atLeast: admitted.length });
  if (used !== admitted.length) faults.push(`${used} of ${admitted.length} requests are counted`);
  return [
    ...faults,
    ...(await faultsByEndpoint(system, tenant, admitted)),
    ...(await faultsByFlag(system, tenant, admitted)),
  ];
}

async function faultsByEndpoint(
  { sql }: System,
  { organizationId }: Tenant,
  admitted: readonly Sent[],
): Promise<string[]> {
  const rows = await sql<{ scope: string; requests: number }[]>`
    select environment_id || ' ' || endpoint as scope, sum(requests)::integer as requests
    from usage.request_hours
    where organization_id = ${organizationId}
    group by scope`;
  const expected = tally(
    admitted.map(({ environmentId, endpoint }) => `${environmentId} ${endpoint}`),
  );
  return differences(expected, new Map(rows.map(({ scope, requests }) => [scope, requests])));
}

async function faultsByFlag(
  { meterings }: System,
  tenant: Tenant,
  admitted: readonly Sent[],
): Promise<string[]> {
  const evaluated = admitted.flatMap(({ environmentId, evaluates }) =>
    evaluates.map(({ id }) => `${environmentId} ${id}`),
  );
  const flagIds = new Set(admitted.flatMap(({ evaluates }) => evaluates.map(({ id }) => id)));
  const found = new Map<string, number>();
  for (const id of flagIds) {
    const url = `${meterings[0]?.url}/api/v1/flags/${id}/usage`;
    const { environments } = await must(url, { key: tenant.serverKey });
    for (const { environment_id, evaluations } of environments)
      if (evaluations > 0) found.set(`${environment_id} ${id}`, evaluations);
  }
  return differences(tally(evaluated), found);
}

function tally(names: readonly string[]): Map<string, number> {
  const counts = new Map<string, number>();
  for (const name of names) counts.set(name, (counts.get(name) ?? 0) + 1);
  return counts;
}

function differences(expected: Map<string, number>, found: Map<string, number>): string[] {
  const names = new Set([...expected.keys(), ...found.keys()]);
  return [...names]
    .filter((name) => expected.get(name) !== found.get(name))
    .map((name) => `${name}: ${found.get(name) ?? 0}, not ${expected.get(name) ?? 0}`);
}
