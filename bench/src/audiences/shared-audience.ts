import { setTimeout as delay } from "node:timers/promises";
import type { Bench } from "../benchmark.ts";
import { startChild } from "../processes/child-process.ts";
import type { Poll, SteadyPollApi } from "../refetch/steady-poll-process.ts";
import { callApi } from "../system/call-api.ts";
import type { Service } from "../system/services.ts";
import { create, createKey, createTenant, type Tenant } from "../system/tenant.ts";
import {
  flagState,
  type TargetedFlag,
  targetedFlags,
  userOf,
} from "../targeting/targeted-flags.ts";
import { contextHeader } from "../targeting/ways-of-asking.ts";
import { nowMs, until } from "../time.ts";

/**
 * Measures the polls of another tenant while an audience changes that many flags use: before the changes, and from the
 * first to the last of them.
 */

const audience = "staff";
const full = { flags: 500, environments: 5, changes: 30, pauseMs: 1_000, quietMs: 20_000 };
const quick = { flags: 5, environments: 2, changes: 2, pauseMs: 100, quietMs: 300 };
const otherFlags = 100;
const pollIntervalMs = 20;
/** Number of concurrent requests while the flags are made. */
const concurrency = 16;

export async function measureOtherTenant(
  bench: Bench,
  { management, edge }: { management: Service; edge: Service },
): Promise<void> {
  const sizes = bench.quick ? quick : full;
  bench.say(`${sizes.flags} flags in ${sizes.environments} environments use one audience`);
  const using = await createUsers(management.url, sizes);
  const targeted = targetedFlags(otherFlags);
  const other = await createTenant(management.url, otherFlags, (index) =>
    flagState(targeted[index] as TargetedFlag),
  );
  const program = "refetch/steady-poll-process.ts";
  const poll = await startChild<SteadyPollApi>(bench, { program, core: "load" });
  const plan = contextHeader.plan(userOf(0), other.clientKey);
  await poll.call.begin({ url: edge.url, plan, intervalMs: pollIntervalMs });
  await delay(sizes.quietMs);
  const quietUntilMs = nowMs();
  const visibleMs: number[] = [];
  for (let number = 0; number < sizes.changes; number += 1) {
    visibleMs.push(await changeAudience(management.url, edge.url, using, number));
    await delay(sizes.pauseMs);
  }
  const polls = await poll.call.end();
  const latency = ({ latencyMs }: Poll) => latencyMs;
  const before = polls.filter(({ dueMs }) => dueMs < quietUntilMs).map(latency);
  const during = polls.filter(({ dueMs }) => dueMs >= quietUntilMs).map(latency);
  const what = `an audience of ${sizes.flags} flags in ${sizes.environments} environments`;
  bench.latencies(`${what}: change until visible, `, visibleMs, { of: ["median", "maximum"] });
  bench.latencies(`${what}: polls of another tenant during changes vs. before, `, during, {
    ...{ of: ["median", "p99"], baselineMs: before },
  });
}

/** The tenant whose flags use the audience, and a client key of each environment. */
type Using = { tenant: Tenant; clientKeys: readonly string[] };

async function createUsers(url: string, { flags, environments }: typeof full): Promise<Using> {
  const tenant = await createTenant(url, 0);
  const token = tenant.serverKey;
  const match = matchOf(0);
  await create(url, { path: "audiences", token, body: { key: audience, name: "Staff", match } });
  const path = `projects/${tenant.projectId}/environments`;
  const ids = [tenant.environmentId];
  while (ids.length < environments)
    ids.push((await create(url, { path, token, body: { name: `env-${ids.length}` } })).id);
  const state = { enabled: true, targeting_rules: [{ conditions: [{ audience }] }] };
  const createFlag = async (number: number) => {
    const body = { key: `flag-${number}`, name: `Flag ${number}` };
    const { id } = await create(url, { path: "flags", token, body });
    for (const environmentId of ids)
      await callApi(`${url}/api/v1/flags/${id}/environments/${environmentId}`, {
        ...{ method: "PATCH", token, body: state },
      });
  };
  for (let made = 0; made < flags; made += concurrency)
    await Promise.all(
      Array.from({ length: Math.min(concurrency, flags - made) }, (_, offset) =>
        createFlag(made + offset),
      ),
    );
  const clientKeys = await Promise.all(
    ids.map((environmentId) => createKey(url, { ...tenant, environmentId }, "client")),
  );
  return { tenant, clientKeys };
}

/** Changes the audience so that it contains another user. Returns the time until every environment serves it. */
async function changeAudience(
  managementUrl: string,
  edgeUrl: string,
  { tenant, clientKeys }: Using,
  number: number,
): Promise<number> {
  const sentMs = nowMs();
  await callApi(`${managementUrl}/api/v1/audiences/${audience}`, {
    ...{ method: "PATCH", token: tenant.serverKey, body: { match: matchOf(number + 1) } },
  });
  const path = `/api/v1/sdk/evaluate?key=flag-0&user_id=user-${number + 1}`;
  const isIn = async (key: string): Promise<boolean> => {
    const response = await fetch(edgeUrl + path, { headers: { authorization: `Bearer ${key}` } });
    return response.ok && (await response.json()).value === true;
  };
  await Promise.all(clientKeys.map((key) => until("the new member is in", () => isIn(key))));
  return nowMs() - sentMs;
}

const matchOf = (number: number) => [
  [{ attribute: "user_id", operator: "equals", value: `user-${number}` }],
];
