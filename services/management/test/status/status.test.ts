import { randomUUID } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  auditStream,
  inboxPrefixOf,
  type ProcessStatus,
  processStatuses,
  type SystemStatus,
} from "@halyard/contracts";
import {
  createTestDatabase,
  eventually,
  natsLogin,
  natsServerBinary,
  type ServiceProcess,
  startRestartableNats,
  startServiceProcess,
} from "@halyard/testing";
import { afterAll, afterEach, describe, expect, it } from "@jest/globals";
import { jetstream } from "@nats-io/jetstream";
import { connect } from "@nats-io/transport-node";
import { createKnownProcesses } from "../../src/status/known-processes.ts";
import { createPropagation } from "../../src/status/propagation.ts";
import { openManagement, operatorToken, seedProject } from "../management-fixture.ts";

/** The status page of the operator, over a real edge. */
const { version: present } = JSON.parse(
  readFileSync(new URL("../../../../package.json", import.meta.url), "utf8"),
);
const edges: ServiceProcess[] = [];

const nats = await startRestartableNats(await natsServerBinary());
const management = await openManagement({ over: { database: await createTestDatabase(), nats } });
const { user, password: pass, url: servers } = natsLogin("sdk-edge", nats.url);
const asEdge = await connect({ servers, user, pass, inboxPrefix: inboxPrefixOf(user) });
const asOperator = await connect({ servers: nats.url });
afterAll(async () => {
  await asEdge.close();
  await asOperator.close();
  await management.close();
});
afterEach(async () => {
  for (const edge of edges.splice(0)) await edge.kill();
});

const ask = (key: string | undefined) =>
  management.call("/api/v1/status", key === undefined ? {} : { key });

async function readStatus(): Promise<SystemStatus> {
  const { status, body } = await ask(operatorToken);
  expect(status).toBe(200);
  return body;
}

async function startEdge(): Promise<ServiceProcess> {
  const edge = await startServiceProcess("sdk-edge", { NATS_URL: nats.url });
  edges.push(edge);
  return edge;
}

const edgesIn = ({ processes }: SystemStatus) =>
  processes.filter(({ service }) => service === "sdk-edge");

const report = (status: unknown) =>
  asEdge.publish(processStatuses.subjectOf("sdk-edge"), JSON.stringify(status));

function statusOf(fields: Partial<ProcessStatus> = {}): ProcessStatus {
  const started_at = "2027-01-31T09:00:00.000Z";
  return { id: randomUUID(), version: "0.2.0", started_at, followers: [], ...fields };
}

describe("the status of an installation", () => {
  it("lists each process with its version until five seconds after its end", async () => {
    const edge = await startEdge();
    const { processes } = await eventually(readStatus, {
      until: (status) =>
        status.processes.length === 2 && status.processes.every(({ state }) => state === "current"),
    });
    expect(processes.map(({ service }) => service)).toEqual(["management", "sdk-edge"]);
    for (const { version, started_at } of processes) {
      expect(version).toBe(present);
      expect(Date.parse(started_at)).toBeLessThan(Date.now());
    }
    await edge.kill();
    const left = await eventually(readStatus, { until: ({ processes: all }) => all.length === 1 });
    expect(left.processes).toMatchObject([{ service: "management" }]);
  });

  it("measures the time of a change until every edge serves it", async () => {
    await startEdge();
    const { propagation } = await eventually(
      async () => {
        const body = { name: "Acme", plan: "pro" };
        await management.call("/api/v1/organizations", {
          method: "POST",
          key: operatorToken,
          body,
        });
        return readStatus();
      },
      { until: (status) => status.propagation.median_ms !== null },
    );
    expect(propagation.median_ms).toBeGreaterThan(0);
    for (const { committed_at } of propagation.recent)
      expect(Date.parse(committed_at)).toBeLessThanOrEqual(Date.now());
  });

  it("names the stale streams of a process", async () => {
    const current = { stream: "KV_SNAPSHOT_2", state: "current", stale_seconds: 0 } as const;
    const stale = { stream: "KV_QUOTA", state: "stale", stale_seconds: 7 } as const;
    const { id, ...status } = statusOf({ followers: [current, stale] });
    report({ id, ...status });
    const shown = await eventually(async () =>
      edgesIn(await readStatus()).find((edge) => edge.id === id),
    );
    expect(shown).toEqual({
      ...{ service: "sdk-edge", id, version: "0.2.0", started_at: status.started_at },
      ...{ state: "stale", stale_seconds: 7, stale_streams: ["KV_QUOTA"] },
    });
  });

  it("ignores invalid and oversized reports", async () => {
    const invalid = [
      { ...statusOf(), version: "x".repeat(100) },
      { ...statusOf(), started_at: "yesterday" },
      { ...statusOf(), padding: "x".repeat(processStatuses.maxBytes) },
    ];
    const last = statusOf();
    for (const each of ["nothing", ...invalid, last]) report(each);
    const shown = await eventually(async () => edgesIn(await readStatus()).map(({ id }) => id), {
      until: (ids) => ids.includes(last.id),
    });
    expect(invalid.filter(({ id }) => shown.includes(id))).toEqual([]);
  });

  it("counts dead letters and gives their reasons without their contents", async () => {
    const none = await eventually(readStatus, { until: (status) => status.dead_letters !== null });
    expect(none.dead_letters).toEqual({ count: 0, newest: [] });
    const secret = JSON.stringify({ id: "a secret" });
    await jetstream(asOperator).publish(auditStream.recorded.subject, secret);
    const { dead_letters } = await eventually(readStatus, {
      until: ({ dead_letters: found }) => found?.count === 1,
    });
    const { subject } = auditStream.recorded;
    const at = expect.stringMatching(/^\d{4}-.*Z$/);
    expect(dead_letters?.newest).toEqual([{ subject, reason: expect.any(String), at }]);
    expect(JSON.stringify(dead_letters)).not.toContain("a secret");
  });

  it("is shown to the operator only", async () => {
    const { serverKey } = await seedProject(management);
    expect(await ask(undefined)).toMatchObject({ status: 401 });
    expect(await ask(serverKey)).toMatchObject({
      status: 403,
      body: { error: { code: "AUTH_002" } },
    });
  });

  it("is available while NATS is silent or stopped, with the processes known before", async () => {
    await eventually(readStatus, { until: ({ processes }) => processes.length === 1 });
    nats.signal("SIGSTOP");
    const silent = await eventually(readStatus, {
      until: (status) => status.dead_letters === null,
    });
    nats.signal("SIGCONT");
    expect(silent).toMatchObject({
      nats: { connected: true },
      processes: [{ service: "management" }],
    });
    await nats.kill();
    const stopped = await eventually(readStatus, { until: (status) => !status.nats.connected });
    expect(stopped).toMatchObject({ dead_letters: null, processes: [{ service: "management" }] });
    await nats.start();
    await eventually(async () => (await readStatus()).dead_letters?.count === 1);
  });
});

describe("the known processes", () => {
  it("are at most 200 of each service", () => {
    const known = createKnownProcesses();
    for (let reports = 0; reports < 300; reports += 1) known.take("sdk-edge", statusOf());
    known.take("scheduler", statusOf());
    expect(known.list()).toHaveLength(201);
  });

  it("are all kept while no report arrives", () => {
    const known = createKnownProcesses();
    known.take("scheduler", statusOf());
    for (let ticks = 0; ticks < 100; ticks += 1) known.tick();
    expect(known.list()).toHaveLength(1);
  });
});

describe("the figures of propagation", () => {
  const committedAt = new Date();

  it("are null without changes", () => {
    const figures = { recent: [], median_ms: null, p99_ms: null };
    expect(createPropagation().figures()).toEqual(figures);
  });

  it("count a change that did not reach every edge as slower than all others", () => {
    const propagation = createPropagation();
    for (const appliedMs of [3, null, 1, 2]) propagation.record({ committedAt, appliedMs });
    expect(propagation.figures()).toMatchObject({ median_ms: 2, p99_ms: null });
  });

  it("cover the last hundred changes, the newest first", () => {
    const propagation = createPropagation();
    for (let appliedMs = 1; appliedMs <= 150; appliedMs += 1)
      propagation.record({ committedAt, appliedMs });
    const { recent, median_ms, p99_ms } = propagation.figures();
    expect(recent.map(({ applied_ms }) => applied_ms)).toEqual(
      Array.from({ length: 100 }, (_, index) => 150 - index),
    );
    expect([median_ms, p99_ms]).toEqual([100, 149]);
  });
});
