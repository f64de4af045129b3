import { setTimeout as delay } from "node:timers/promises";
import { usageStream } from "@halyard/contracts";
import { eventually } from "@halyard/testing";
import { withManager } from "../system/disturbances.ts";
import type { System } from "../system/system.ts";
import { must, type Tenant } from "../system/tenancy.ts";
import type { Sent } from "../traffic/usage-traffic.ts";

/**
 * What was sent against what was counted: by organization, by environment and endpoint, and by flag. Each
 * check answers its complaints in words.
 */

/** Requests that got nothing for want of a key, a slot or a month have used nothing. */
const usesNothing = new Set([401, 429, 503]);

/** A message that an edge believes lost comes again within this time. */
const repetitionsWithinMs = 1_500;

export const counted = (sent: readonly Sent[]): Sent[] =>
  sent.filter(
    ({ endpoint, status }) =>
      endpoint !== undefined && status !== undefined && !usesNothing.has(status),
  );

export const unanswered = (sent: readonly Sent[]): Sent[] =>
  sent.filter(({ endpoint, status }) => endpoint !== undefined && status === undefined);

/** How much has been used, as the organization is told. */
export async function requestsUsed(system: System, tenant: Tenant): Promise<number> {
  const [metering] = system.meterings;
  const usage = await must(`${metering?.url}/api/v1/usage`, { key: tenant.serverKey });
  return usage.requests.used;
}

/** Waits until as much is counted as was sent, and until nothing is on its way that could add to it. */
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
    because: "no message is on its way",
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
 * Everything that is not as it was sent, to the request. One without an answer must not be counted: it is
 * only asked when no edge is killed, and one that stops answers all that has reached it.
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
  const rows = await sql<{ place: string; requests: number }[]>`
    select environment_id || ' ' || endpoint as place, sum(requests)::integer as requests
    from usage.request_hours
    where organization_id = ${organizationId}
    group by place`;
  const expected = tally(
    admitted.map(({ environmentId, endpoint }) => `${environmentId} ${endpoint}`),
  );
  return differences(expected, new Map(rows.map(({ place, requests }) => [place, requests])));
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
