import {
  assertTargeted,
  type ReadValues,
  readFlagValues,
  type Value,
} from "../targeting/assert-targeted.ts";
import { type AnyFlag, colorShares, type SplitFlag } from "../targeting/targeted-flags.ts";
import type { Way } from "../targeting/ways-of-asking.ts";

/** Maximum difference of a share, in percent of all users. */
const tolerance = 5;

/**
 * Verifies that another server returns the right values of constant flags and rules, and the right shares of the values
 * of splits, because each server hashes users in its own way. Returns the mean size of a response.
 */
export async function assertPeer(
  url: string,
  options: { way: Way; key: string; flags: readonly AnyFlag[]; readValues?: ReadValues },
): Promise<number> {
  const { way, key, flags, readValues = readFlagValues } = options;
  const splits = flags.filter((flag) => flag.kind === "split");
  const given: Value[] = [];
  const bytes = await assertTargeted(url, {
    ...{ way, key, flags: flags.filter(({ kind }) => kind === "constant" || kind === "rules") },
    readValues(body) {
      const values = readValues(body);
      given.push(...splits.map((split) => values.get(split.key)));
      return values;
    },
  });
  if (splits[0] !== undefined) assertShares(way, splits[0], given);
  return bytes;
}

function assertShares({ name }: Way, split: SplitFlag, given: readonly Value[]): void {
  for (const [color, expected] of Object.entries(colorShares(split))) {
    const share = (given.filter((value) => value === color).length / given.length) * 100;
    if (Math.abs(share - expected) > tolerance)
      throw new Error(`${name}: ${color} has ${share} % of the users instead of ${expected} %`);
  }
}
