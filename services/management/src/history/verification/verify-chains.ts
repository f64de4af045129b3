import type { Sql } from "@halyard/postgres";
import { type ChainEnd, readDeletions, readFlags, readStates } from "./chain-ends-store.ts";
import { readLinks } from "./chain-store.ts";
import { finish, follow, type Walk } from "./decide-break.ts";
import type { Break } from "./link.ts";

/** What was looked at so far. */
export type Verified = { entries: number; states: number; deletions: number };

type Tell = {
  broken: (found: Break) => Promise<void>;
  progress: (verified: Verified) => void;
};

/**
 * Walks all chains, then compares where each ends with the flag's state, or with what the audit log says
 * that it was when it was deleted. What is broken is told as it is found, the first break of each chain.
 * It needs no more memory for a longer history, only for more chains that are broken.
 */
export async function verifyChains(sql: Sql, tell: Tell): Promise<Verified> {
  const verified: Verified = { entries: 0, states: 0, deletions: 0 };
  const broken = new Set<string>();
  const progress = () => tell.progress(verified);

  async function tellFirst(found: Break): Promise<void> {
    const chain = `${found.place.flagId}.${found.place.environmentId}`;
    if (broken.has(chain)) return;
    broken.add(chain);
    await tell.broken(found);
  }

  for await (const found of walkChains(sql, verified, progress)) await tellFirst(found);

  for await (const states of readStates(sql)) {
    for (const found of states.flatMap(breakOfState)) await tellFirst(found);
    verified.states += states.length;
    progress();
  }
  for await (const flags of readFlags(sql))
    for (const { flagId, withoutState } of flags)
      for (const environmentId of withoutState)
        await tellFirst({ place: { flagId, environmentId }, kind: "no_state" });

  for await (const deletions of readDeletions(sql)) {
    for (const found of deletions.flatMap(breakOfDeletion)) await tellFirst(found);
    verified.deletions += deletions.length;
    progress();
  }
  return verified;
}

async function* walkChains(
  sql: Sql,
  verified: Verified,
  progress: () => void,
): AsyncGenerator<Break> {
  let walk: Walk = { at: "start" };
  for await (const links of readLinks(sql)) {
    for (const link of links) {
      const followed = follow(walk, link);
      walk = followed.walk;
      yield* followed.breaks;
    }
    verified.entries += links.length;
    progress();
  }
  yield* finish(walk);
}

function breakOfState({ newest, agrees, ...place }: ChainEnd): Break[] {
  if (newest === undefined) return [{ place, kind: "no_history" }];
  return agrees ? [] : [{ place, kind: "newest_differs", entry: newest }];
}

function breakOfDeletion({ newest, agrees, ...place }: ChainEnd): Break[] {
  if (newest === undefined) return [{ place, kind: "no_history_of_deleted" }];
  return agrees ? [] : [{ place, kind: "newest_differs_from_deleted", entry: newest }];
}
