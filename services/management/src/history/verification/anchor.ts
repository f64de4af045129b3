import type { ChainPlace, Link } from "./link.ts";

/** The head of a chain: its newest entry at some time. Kept outside of the database, it shows that a chain was rewritten. */
export type Head = ChainPlace & {
  id: string;
  changedAt: Date;
  hash: string;
  /** Position of the entry in its chain, from 1. Removed entries count. */
  position: number;
};

/** Returns the position of a link, given the position of the link before it in the same chain. */
export function positionOf(link: Link, before: number | undefined): number {
  const followsRemoved = link.previousHash === link.removedHash;
  return before === undefined || followsRemoved ? link.removedEntries + 1 : before + 1;
}

export function headOf(link: Link, position: number): Head {
  const { flagId, environmentId, id, changedAt, hash } = link;
  return { flagId, environmentId, id, changedAt, hash, position };
}

/** The order of chains, as PostgreSQL sorts UUIDs. */
export function comparePlaces(one: ChainPlace, other: ChainPlace): number {
  const [left, right] = [one, other].map(
    ({ flagId, environmentId }) => `${flagId}.${environmentId}`,
  ) as [string, string];
  if (left === right) return 0;
  return left < right ? -1 : 1;
}
