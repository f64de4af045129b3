/** The requirements in an environment: the key of each flag, with the keys of the flags that it requires. */
export type RequirementGraph = ReadonlyMap<string, readonly string[]>;

/** Maximum number of requirements in a chain: each flag requires the next one. */
export const maxChainLength = 10;

/**
 * Returns the shortest circle of requirements through a flag: its key, those of the others, and its key again. Undefined
 * without a circle.
 */
export function findCircle(graph: RequirementGraph, key: string): string[] | undefined {
  const requiresKey = (path: string[]) => graph.get(path.at(-1) ?? "")?.includes(key) === true;
  const path = [[key], ...pathsFrom(graph, key)].find(requiresKey);
  return path && [...path, key];
}

/** Returns the longest chain of requirements through a flag that is in no circle, as keys. */
export function longestChain(graph: RequirementGraph, key: string): string[] {
  const above = longestPath(reverse(graph), key).reverse();
  return [...above.slice(0, -1), ...longestPath(graph, key)];
}

/**
 * Returns the flags that require a flag, directly or through others: for each one the shortest path from it to the flag,
 * as keys. The shortest paths are first.
 */
export function pathsOfDependents(graph: RequirementGraph, key: string): string[][] {
  return pathsFrom(reverse(graph), key).map((path) => path.reverse());
}

/** Returns the shortest path from a key to each other key that is reachable from it, shortest first. */
function pathsFrom(graph: RequirementGraph, key: string): string[][] {
  const seen = new Set([key]);
  const paths: string[][] = [[key]];
  for (const path of paths)
    for (const next of graph.get(path.at(-1) ?? "") ?? []) {
      if (seen.has(next)) continue;
      seen.add(next);
      paths.push([...path, next]);
    }
  return paths.slice(1);
}

function longestPath(graph: RequirementGraph, key: string): string[] {
  const known = new Map<string, readonly string[]>();
  const from = (start: string): readonly string[] => {
    let longest = known.get(start);
    if (longest === undefined) {
      // Ends the path at a circle, which only a change of the tables by hand can make.
      known.set(start, [start]);
      const rests = (graph.get(start) ?? []).map(from);
      const rest = rests.reduce((best, each) => (each.length > best.length ? each : best), []);
      longest = [start, ...rest];
      known.set(start, longest);
    }
    return longest;
  };
  return [...from(key)];
}

function reverse(graph: RequirementGraph): RequirementGraph {
  const reversed = new Map<string, string[]>();
  for (const [key, required] of graph)
    for (const each of required) {
      const above = reversed.get(each);
      if (above === undefined) reversed.set(each, [key]);
      else above.push(key);
    }
  return reversed;
}
