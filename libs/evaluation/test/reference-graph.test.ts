import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { ReferenceGraph, type Referrer } from "../src/index.ts";

const flag = (key: string, flags: string[] = [], audiences: string[] = []): Referrer => ({
  ...{ id: `id of ${key}`, key, flags, audiences },
});

function graphOf(...referrers: Referrer[]): ReferenceGraph {
  const graph = new ReferenceGraph();
  for (const referrer of referrers) graph.put(referrer);
  return graph;
}

const changed = { referrers: [], audiences: [], flags: [] };
const idOf = (key: string) => `id of ${key}`;

describe("given flags that refer to audiences and flags", () => {
  const graph = graphOf(
    flag("a", [], ["beta"]),
    flag("b", ["a"]),
    flag("c", ["b", "plain"]),
    flag("d", [], ["other"]),
  );

  it.each([
    { change: { audiences: ["beta"] }, reaches: ["a", "b", "c"] },
    { change: { audiences: ["other"] }, reaches: ["d"] },
    { change: { audiences: ["unknown"] }, reaches: [] },
    { change: { flags: ["plain"] }, reaches: ["c"] },
    { change: { flags: ["a"] }, reaches: ["b", "c"] },
    { change: { referrers: [idOf("b"), idOf("deleted")] }, reaches: ["b", "c"] },
  ])("orders the flags that $change reaches by their requirements", ({ change, reaches }) => {
    expect(graph.reachedBy({ ...changed, ...change })).toEqual({
      ordered: reaches.map(idOf),
      circular: [],
    });
  });

  it("reaches a flag no longer when it refers to something else or is removed", () => {
    const other = graphOf(flag("a", [], ["beta"]), flag("b", ["a"]));
    other.put(flag("a", [], ["other"]));
    expect(other.reachedBy({ ...changed, audiences: ["beta"] }).ordered).toEqual([]);
    other.remove(idOf("b"));
    expect(other.reachedBy({ ...changed, flags: ["a"] }).ordered).toEqual([]);
  });
});

describe("given flags that require each other", () => {
  it("finds the circle and its dependents, and no other flag", () => {
    const graph = graphOf(
      flag("a", ["b", "free"]),
      flag("b", ["a"]),
      flag("after", ["b"]),
      flag("itself", ["itself"]),
      flag("free", [], ["beta"]),
      flag("user", ["free"]),
    );
    const all = ["a", "b", "after", "itself", "free", "user"].map(idOf);
    const { ordered, circular } = graph.reachedBy({ ...changed, referrers: all });
    expect(ordered).toEqual(["free", "user"].map(idOf));
    expect([...circular].sort()).toEqual(["a", "after", "b", "itself"].map(idOf).sort());
  });

  it("finds a chain of any length without a deep stack", () => {
    const count = 20_000;
    const chain = Array.from({ length: count }, (_, at) => flag(`${at}`, [`${at - 1}`]));
    const open = graphOf(...chain).reachedBy({ ...changed, flags: ["-1"] });
    expect(open.ordered).toHaveLength(count);
    const closed = graphOf(...chain, flag("-1", [`${count - 1}`]));
    expect(closed.reachedBy({ ...changed, flags: ["-1"] }).circular).toHaveLength(count + 1);
  });
});

describe("given any references", () => {
  const keys = ["a", "b", "c", "d", "e", "f"];
  const audiences = ["x", "y"];
  const referrers = fc.tuple(
    ...keys.map((key) =>
      fc
        .record({ flags: fc.subarray(keys), audiences: fc.subarray(audiences) })
        .map((given) => flag(key, given.flags, given.audiences)),
    ),
  );
  const change = fc.record({
    ...{ referrers: fc.subarray(keys.map(idOf)), audiences: fc.subarray(audiences) },
    flags: fc.subarray([...keys, "plain"]),
  });

  it("reaches exactly the dependents, each after the flags that it requires", () => {
    fc.assert(
      fc.property(referrers, change, (given, start) => {
        const { ordered, circular } = graphOf(...given).reachedBy(start);
        const reached = dependentsOf(given, start);
        expect([...ordered, ...circular].sort()).toEqual([...reached].sort());
        const within = given.filter(({ id }) => reached.has(id));
        const inCircles = within.filter((one) => requiresCircle(within, one));
        expect(new Set(circular)).toEqual(new Set(inCircles.map(({ id }) => id)));
        for (const [position, id] of ordered.entries())
          for (const key of given.find((one) => one.id === id)?.flags ?? [])
            if (reached.has(idOf(key))) expect(ordered.indexOf(idOf(key))).toBeLessThan(position);
      }),
    );
  });

  function dependentsOf(
    given: readonly Referrer[],
    start: Parameters<ReferenceGraph["reachedBy"]>[0],
  ) {
    const reached = new Set(start.referrers);
    const flags = new Set(start.flags);
    for (let size = -1; size !== reached.size + flags.size; ) {
      size = reached.size + flags.size;
      for (const one of given) {
        const isReached =
          reached.has(one.id) ||
          one.audiences.some((key) => [...start.audiences].includes(key)) ||
          one.flags.some((key) => flags.has(key));
        if (isReached) {
          reached.add(one.id);
          flags.add(one.key);
        }
      }
    }
    return reached;
  }

  /** Returns whether a flag is in a circle, or requires a flag that is. */
  function requiresCircle(given: readonly Referrer[], one: Referrer): boolean {
    const required = (from: Referrer) => given.filter(({ key }) => from.flags.includes(key));
    const reachable = new Set<Referrer>();
    const add = (from: Referrer) => {
      for (const next of required(from))
        if (!reachable.has(next)) {
          reachable.add(next);
          add(next);
        }
    };
    add(one);
    return [one, ...reachable].some((each) => {
      const own = new Set<Referrer>();
      const follow = (from: Referrer) => {
        for (const next of required(from))
          if (!own.has(next)) {
            own.add(next);
            follow(next);
          }
      };
      follow(each);
      return own.has(each);
    });
  }
});
