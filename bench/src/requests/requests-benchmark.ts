import type { Bench, Benchmark } from "../benchmark.ts";
import { below } from "../reporting.ts";
import { startBackends } from "../system/backends.ts";
import { callApi, timedCall } from "../system/call-api.ts";
import { operatorToken, publicUrl, startEdge, startManagement } from "../system/services.ts";
import { signIn } from "../system/sign-in.ts";
import { create, createTenant, type Tenant, togglesInTurn } from "../system/tenant.ts";
import { during } from "../time.ts";

export const requestsBenchmark: Benchmark = {
  name: "requests",
  pinned: false,
  summary: "a change request of 200 changes, and what other tenants wait meanwhile",
  method:
    "A key opens a request that changes the percentage of 200 flags in a protected environment. An approver approves it and applies it. The time is from the request of the approval to the response of the application, when an edge serves all changes. Meanwhile four other organizations toggle a flag each, one request after the other. The baseline is the slowest of their writes without an application, for as long and in turn.",
  run,
};

const size = { changes: 200, rounds: 30, others: 4 };
const quickSize = { changes: 3, rounds: 1, others: 1 };

async function run(bench: Bench): Promise<void> {
  const { changes, rounds, others } = bench.quick ? quickSize : size;
  const backends = await startBackends(bench);
  const { url } = await startManagement(bench, backends);
  await startEdge(bench, backends);
  const tenant = await createTenant(url, changes);
  const review = await startReview(url, tenant);
  const toggles = await Promise.all(
    Array.from({ length: others }, async () => togglesInTurn(url, await createTenant(url, 1))),
  );
  /** Returns the times of the writes of other organizations during some work. */
  async function beside(work: Promise<unknown>): Promise<number[]> {
    const timesMs: number[] = [];
    await during(work, async () => {
      const written = await Promise.all(toggles.map((toggle) => toggle()));
      timesMs.push(...written.map(({ sentMs, answeredMs }) => answeredMs - sentMs));
    });
    return timesMs;
  }
  const [tookMs, withIt, without] = [[], [], []] as [number[], number[], number[]];
  bench.say(`${rounds} requests of ${changes} changes`);
  for (let round = 0; round < rounds; round += 1) {
    const request = await review.open(round);
    const applying = review.apply(request);
    withIt.push(Math.max(...(await beside(applying))));
    const applied = await applying;
    tookMs.push(applied);
    without.push(Math.max(...(await beside(new Promise((end) => setTimeout(end, applied))))));
  }
  bench.latencies(`${changes} changes, approval to applied: `, tookMs, {
    ...{ of: ["median", "maximum"], goals: { maximum: below(1_000) } },
  });
  bench.latencies("slowest concurrent PATCH of another organization: ", withIt, {
    ...{ of: ["median", "maximum"], baselineMs: without, goals: { maximum: below(200) } },
  });
}

/** Protects the environment of a tenant, and signs in an approver. */
async function startReview(managementUrl: string, tenant: Tenant) {
  const { organizationId, projectId, environmentId, serverKey, flagIds } = tenant;
  const organization = `organizations/${organizationId}`;
  const protectedUrl = `${managementUrl}/api/v1/projects/${projectId}/environments/${environmentId}`;
  await callApi(protectedUrl, {
    ...{ method: "PATCH", token: operatorToken, body: { protected: { approvals: 1 } } },
  });
  const operate = (path: string, body: object) =>
    create(managementUrl, { path: `${organization}/${path}`, body });
  const { id: userId } = await operate("users", { email: "ben@example.com" });
  const scope = { project: projectId };
  await operate("grants", { subject: { user_id: userId }, role: "approver", scope });
  const session = await signIn(managementUrl, tenant, userId);
  const headers = { ...session.headers, origin: publicUrl };
  const requests = `${managementUrl}/api/v1/change-requests`;
  return {
    open(round: number): Promise<OpenRequest> {
      const patch = { rollout_percentage: round % 100 };
      const changes = flagIds.map((flag_id) => ({
        ...{ kind: "state", flag_id, environment_id: environmentId, patch },
      }));
      const body = { title: `Percentage ${round}`, changes };
      return callApi(requests, { method: "POST", token: serverKey, body, status: 201 });
    },
    /** Approves and applies a request. Returns the time that it took. */
    async apply({ id, content_hash }: OpenRequest): Promise<number> {
      const step = (name: string, body?: object) =>
        timedCall(`${requests}/${id}/${name}`, { method: "POST", headers, body });
      const { sentMs } = await step("approve", { content_hash });
      return (await step("apply")).answeredMs - sentMs;
    },
  };
}

type OpenRequest = { id: string; content_hash: string };
