import { comparePlaces, type Head } from "./anchor.ts";
import type { Break, ChainPlace, Link } from "./link.ts";

/**
 * Compares the chains with earlier heads. Both arrive in the order of their places, so a single head is in memory at a
 * time. Each head must still be in its chain, or its removal must be recorded.
 */
export type HeadComparison = {
  /** Takes the next link. Returns breaks of this chain, and of chains before it that have no more links. */
  follow(link: Link, position: number): Promise<Break[]>;
  /** Returns the breaks of the remaining chains. */
  finish(): Promise<Break[]>;
  /** Number of heads compared. */
  count(): number;
};

/** The database refuses a shorter retention period. */
const shortestRetentionMs = 30 * 24 * 60 * 60 * 1_000;

export function compareHeads(
  heads: AsyncIterator<Head>,
  options: {
    /** Returns true if retention removed all entries of the chain of this head. */
    wasRemoved: (head: Head) => Promise<boolean>;
    now: Date;
  },
): HeadComparison {
  let head: Head | "found" | undefined;
  let place: ChainPlace | undefined;
  let hasBegun = false;
  let count = 0;

  async function next(): Promise<Head | undefined> {
    const read = await heads.next();
    if (read.done) return undefined;
    count += 1;
    return read.value;
  }

  /** Moves on to the first head that is not before this place. Heads that are passed by are missing. */
  async function passTo(to: ChainPlace | undefined): Promise<Break[]> {
    const breaks: Break[] = [];
    if (!hasBegun || head === "found") head = await next();
    hasBegun = true;
    while (head !== undefined && (to === undefined || comparePlaces(head, to) < 0)) {
      const hadLinks = place !== undefined && comparePlaces(head, place) === 0;
      if (hadLinks || !(await options.wasRemoved(head))) breaks.push(missing(head));
      head = await next();
    }
    return breaks;
  }

  function isAccountedFor(link: Link, position: number, sought: Head): boolean {
    if (position === sought.position) return link.hash === sought.hash;
    if (position - 1 === sought.position) return link.previousHash === sought.hash;
    return options.now.getTime() - sought.changedAt.getTime() > shortestRetentionMs;
  }

  return {
    async follow(link, position) {
      const isNewChain = place === undefined || comparePlaces(place, link) !== 0;
      const breaks = isNewChain ? await passTo(link) : [];
      place = { flagId: link.flagId, environmentId: link.environmentId };
      if (head === undefined || head === "found" || comparePlaces(head, link) !== 0) return breaks;
      if (position < head.position) return breaks;
      if (!isAccountedFor(link, position, head)) breaks.push(missing(head));
      head = "found";
      return breaks;
    },
    finish: () => passTo(undefined),
    count: () => count,
  };
}

function missing({ id, changedAt, ...place }: Head): Break {
  return { place, kind: "anchored_missing", entry: { id, changedAt } };
}
