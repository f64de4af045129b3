import { randomUUID } from "node:crypto";
import { type EdgeStreams, edgeStreams } from "@halyard/contracts";
import { beforeEach, describe, expect, it } from "@jest/globals";
import { createOpenStreams, type OpenStreams } from "../src/index.ts";

const [edge, second] = [randomUUID(), randomUUID()];
const [acme, globex] = [randomUUID(), randomUUID()];
const silentAfterTicks = edgeStreams.silentAfterMs / edgeStreams.intervalMs;
let streams: OpenStreams;

beforeEach(() => {
  streams = createOpenStreams();
});

const all = (counts: Record<string, number>, part = 1, parts = 1, of = edge): EdgeStreams => ({
  ...{ state: "all", edge: of, part, parts, streams: counts },
});
const changed = (counts: Record<string, number>, of = edge): EdgeStreams => ({
  ...{ state: "changed", edge: of, streams: counts },
});

describe("the open streams of an organization", () => {
  it("are the sum of all edges", () => {
    streams.take(all({ [acme]: 2 }));
    streams.take(changed({ [acme]: 3, [globex]: 1 }, second));
    expect([streams.of(acme), streams.of(globex), streams.edges()]).toEqual([5, 1, 2]);
    streams.take(changed({ [acme]: 0 }));
    expect(streams.of(acme)).toBe(3);
  });

  it("are replaced by a complete report, which heals lost changes", () => {
    streams.take(changed({ [acme]: 2 }));
    streams.take(all({ [globex]: 1 }));
    expect([streams.of(acme), streams.of(globex)]).toEqual([0, 1]);
  });

  it("are replaced when the last part of a report arrives", () => {
    streams.take(all({ [acme]: 1, [globex]: 1 }));
    streams.take(all({ [acme]: 2 }, 1, 2));
    expect([streams.of(acme), streams.of(globex)]).toEqual([1, 1]);
    streams.take(all({ [globex]: 2 }, 2, 2));
    expect([streams.of(acme), streams.of(globex)]).toEqual([2, 2]);
  });

  it("stay the same if a part was lost, until the next complete report", () => {
    streams.take(all({ [acme]: 1 }));
    streams.take(all({ [acme]: 2 }, 1, 3));
    streams.take(all({ [globex]: 2 }, 3, 3));
    expect([streams.of(acme), streams.of(globex)]).toEqual([1, 0]);
    streams.take(all({ [globex]: 3 }));
    expect([streams.of(acme), streams.of(globex)]).toEqual([0, 3]);
  });
});

describe("the open streams of an edge", () => {
  it("do not count after it has stopped", () => {
    streams.take(all({ [acme]: 1 }));
    streams.take({ state: "stopped", edge });
    expect([streams.of(acme), streams.edges()]).toEqual([0, 0]);
  });

  it("count until it has been silent for twenty ticks", () => {
    streams.take(all({ [acme]: 1 }));
    streams.take(all({ [acme]: 1 }, 1, 1, second));
    for (let ticks = 0; ticks < silentAfterTicks; ticks += 1) {
      expect(streams.tick()).toEqual([]);
      streams.take(changed({}, second));
    }
    expect(streams.of(acme)).toBe(2);
    expect(streams.tick()).toEqual([edge]);
    expect(streams.of(acme)).toBe(1);
  });

  it("count for the full time again after reports were lost", () => {
    streams.take(all({ [acme]: 1 }));
    for (let ticks = 0; ticks < silentAfterTicks; ticks += 1) streams.tick();
    streams.interrupted();
    expect([streams.tick(), streams.of(acme)]).toEqual([[], 1]);
  });

  it("are ignored if it is the edge of this process", () => {
    const others = createOpenStreams({ except: edge });
    others.take(all({ [acme]: 1 }));
    expect([others.of(acme), others.edges()]).toEqual([0, 0]);
  });
});

describe("reports of a compromised edge", () => {
  beforeEach(() => {
    streams = createOpenStreams({ bounds: { edges: 3, counts: 10 } });
  });

  it("are ignored beyond the maximum number of edges", () => {
    for (let edges = 0; edges < 3; edges += 1)
      expect(streams.take(changed({}, randomUUID()))).toBeUndefined();
    expect(streams.take(changed({ [acme]: 1 }, randomUUID()))).toBe("too many edges report");
    expect([streams.of(acme), streams.edges()]).toEqual([0, 3]);
  });

  it("are ignored beyond the maximum number of counts, also in parts that never end", () => {
    const counts = () => ({ [randomUUID()]: 1, [randomUUID()]: 1 });
    for (let part = 1; part <= 3; part += 1)
      expect(streams.take(all(counts(), part, 100))).toBeUndefined();
    for (let times = 0; times < 2; times += 1)
      expect(streams.take(changed(counts(), second))).toBeUndefined();
    expect(streams.take(changed({ [acme]: 1 }))).toBe("the edges report too many organizations");
    streams.take({ state: "stopped", edge: second });
    expect(streams.take(changed({ [acme]: 1 }))).toBeUndefined();
  });
});
