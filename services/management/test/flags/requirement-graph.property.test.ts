import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import {
  findCircle,
  longestChain,
  pathsOfDependents,
  type RequirementGraph,
} from "../../src/flags/requirement-graph.ts";

const keys = ["a", "b", "c", "d", "e", "f"];
const key = fc.constantFrom(...keys);
const edges = fc.uniqueArray(fc.tuple(key, key), { maxLength: 15, selector: String });

const graphOf = (pairs: readonly (readonly [string, string])[]): RequirementGraph =>
  new Map(
    [...Map.groupBy(pairs, ([from]) => from)].map(([from, to]) => [
      from,
      to.map(([, each]) => each),
    ]),
  );

/** Requirements only of later keys, which make no circle. */
const acyclic = edges.map((pairs) => graphOf(pairs.filter(([from, to]) => from < to)));

/** Returns every path without a repeated key. Only the last key may equal the first. */
function everyPath(graph: RequirementGraph): string[][] {
  const extend = (path: string[]): string[][] => [
    path,
    ...(graph.get(path.at(-1) ?? "") ?? []).flatMap((next) => {
      if (next === path[0]) return [[...path, next]];
      return path.includes(next) ? [] : extend([...path, next]);
    }),
  ];
  return keys.flatMap((start) => extend([start]));
}

const isPath = (graph: RequirementGraph, path: readonly string[]) =>
  path.slice(1).every((to, index) => graph.get(path[index] ?? "")?.includes(to));

const shortest = (paths: readonly string[][]) => Math.min(...paths.map((path) => path.length));

describe("the requirements of an environment", () => {
  it("have a circle through a flag if and only if a path leads back to it, and the shortest is found", () => {
    fc.assert(
      fc.property(edges.map(graphOf), key, (graph, through) => {
        const circles = everyPath(graph).filter(
          (path) => path.length > 1 && path[0] === through && path.at(-1) === through,
        );
        const found = findCircle(graph, through);
        expect(found?.length ?? Number.POSITIVE_INFINITY).toBe(shortest(circles));
        if (found !== undefined) expect(circles).toContainEqual(found);
      }),
    );
  });

  it("have a longest chain through each flag", () => {
    fc.assert(
      fc.property(acyclic, key, (graph, through) => {
        const chains = everyPath(graph).filter((path) => path.includes(through));
        const found = longestChain(graph, through);
        expect(isPath(graph, found)).toBe(true);
        expect(found).toContain(through);
        expect(found.length).toBe(Math.max(...chains.map((path) => path.length)));
      }),
    );
  });

  it("lead from each dependent to the flag by a shortest path, the shortest first", () => {
    fc.assert(
      fc.property(edges.map(graphOf), key, (graph, required) => {
        const paths = everyPath(graph).filter(
          (path) => path.at(-1) === required && path.length > 1 && path[0] !== required,
        );
        const found = pathsOfDependents(graph, required);
        expect(new Set(found.map(([first]) => first))).toEqual(
          new Set(paths.map(([first]) => first)),
        );
        for (const path of found) {
          expect(isPath(graph, path)).toBe(true);
          expect(path.length).toBe(shortest(paths.filter(([first]) => first === path[0])));
        }
        const lengths = found.map((path) => path.length);
        expect(lengths).toEqual(lengths.toSorted((one, other) => one - other));
      }),
    );
  });
});
