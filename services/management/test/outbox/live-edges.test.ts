import { randomUUID } from "node:crypto";
import { edgeReports, type SnapshotRevision } from "@halyard/contracts";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { createLiveEdges, type LiveEdges, tickMs } from "../../src/outbox/live-edges.ts";

const epoch = randomUUID();
const newEpoch = randomUUID();
const [first, second] = [randomUUID(), randomUUID()];
let edges: LiveEdges;

beforeEach(() => {
  edges = createLiveEdges();
});

/** Returns whether a write of this revision is waiting. */
async function waits(revision: number, of = epoch): Promise<boolean> {
  const ending = new AbortController();
  let isWaiting = true;
  const applied = edges.waitUntilApplied({ epoch: of, revision }, ending.signal).then(() => {
    isWaiting = ending.signal.aborted;
  });
  await new Promise(setImmediate);
  ending.abort();
  await applied;
  return isWaiting;
}

const report = (edge: string, revision: number, of = epoch) =>
  edges.take({ state: "current", edge, epoch: of, revision });

function pass(ms: number, reporting: Record<string, SnapshotRevision> = {}): void {
  for (let passed = 0; passed < ms; passed += tickMs) {
    for (const [edge, applied] of Object.entries(reporting)) report(edge, applied.revision);
    edges.tick();
  }
}

/** Passes enough time for every edge to report. */
const listen = () => pass(edgeReports.intervalMs * 3);

describe("given management that has just connected to NATS", () => {
  it("waits until every edge has had time to report", async () => {
    expect(await waits(1)).toBe(true);
    listen();
    expect(await waits(1)).toBe(false);
  });

  it("waits again after a lost connection, and still waits for known edges", async () => {
    listen();
    report(first, 1);
    edges.interrupted();
    expect(await waits(1)).toBe(true);
    listen();
    expect(await waits(1)).toBe(false);
    expect(await waits(2)).toBe(true);
  });
});

describe("given two edges that report", () => {
  beforeEach(() => {
    listen();
    report(first, 10);
    report(second, 10);
  });

  it("waits until both have applied the revision", async () => {
    expect(await waits(11)).toBe(true);
    report(first, 11);
    expect(await waits(11)).toBe(true);
    report(second, 12);
    expect(await waits(11)).toBe(false);
  });

  it("ends a wait at the report that completes it", async () => {
    const applied = edges.waitUntilApplied({ epoch, revision: 11 }, new AbortController().signal);
    report(first, 11);
    report(second, 11);
    await applied;
  });

  it("does not compare revisions of different epochs", async () => {
    expect(await waits(1, newEpoch)).toBe(true);
    report(first, 1, newEpoch);
    report(second, 1, newEpoch);
    expect(await waits(1, newEpoch)).toBe(false);
    expect(await waits(10)).toBe(true);
  });

  it("does not wait for a stopped edge", async () => {
    report(first, 11);
    edges.take({ state: "stopped", edge: second });
    expect(await waits(11)).toBe(false);
    expect(edges.count()).toBe(1);
  });

  it("does not wait for an edge that has been silent for two seconds", async () => {
    pass(edgeReports.silentAfterMs, { [first]: { epoch, revision: 11 } });
    expect(await waits(11)).toBe(true);
    pass(tickMs, { [first]: { epoch, revision: 11 } });
    expect(await waits(11)).toBe(false);
  });
});

describe("given an edge that was silent", () => {
  beforeEach(() => {
    listen();
    report(first, 10);
    pass(edgeReports.silentAfterMs + tickMs);
    edges.published({ epoch, revision: 20 });
  });

  it("counts as live again when it reaches the revision that was current at its return", async () => {
    report(first, 10);
    edges.published({ epoch, revision: 21 });
    expect(await waits(21)).toBe(false);
    report(first, 20);
    expect(await waits(21)).toBe(true);
    expect(edges.count()).toBe(1);
  });

  it("must reach the new epoch after a rebuild", async () => {
    report(first, 10);
    edges.published({ epoch: newEpoch, revision: 5 });
    report(first, 30);
    expect(edges.count()).toBe(0);
    report(first, 5, newEpoch);
    expect(edges.count()).toBe(1);
  });
});

describe("given an edge that starts", () => {
  beforeEach(() => {
    listen();
    edges.published({ epoch, revision: 20 });
    edges.take({ state: "starting", edge: first });
  });

  it("delays writes from its first report on", async () => {
    expect(await waits(20)).toBe(true);
    report(first, 20);
    expect(await waits(20)).toBe(false);
  });

  it("does not delay writes after the first two seconds of its full read", async () => {
    pass(edgeReports.silentAfterMs + tickMs);
    expect(await waits(20)).toBe(false);
  });
});
