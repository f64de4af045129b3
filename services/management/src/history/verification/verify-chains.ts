import type { Sql } from "@halyard/postgres";
import { type Break, finish, follow, isSameScope, type Link, type Walk } from "./chain.ts";
import {
  type ChainEnd,
  type LiveEnd,
  type RecordedEnd,
  readDeletions,
  readFlags,
  readRecordedEnds,
  readStates,
} from "./chain-ends-store.ts";
import { readLinks } from "./chain-store.ts";
import { type Head, type HeadComparison, headOf, positionOf } from "./heads.ts";

/** Number of rows checked so far. */
export type Verified = { entries: number; states: number; deletions: number };

type Options = {
  /** Called with the first break of each chain. */
  broken: (found: Break) => Promise<void>;
  progress: (verified: Verified) => void;
  /** Called with the head of each chain, in the order of scopes. */
  head?: ((head: Head) => Promise<void>) | undefined;
  /** Earlier heads that must still be in their chains. */
  against?: HeadComparison | undefined;
};

/**
 * Verifies all chains, then compares the end of each with the required one. The required end is the state of the flag
 * with its last audit entry, the audit entry of the deletion, or a recorded end. An end is recorded when a project or
 * environment is deleted. The memory that it needs grows with the number of broken chains, not with the length of the
 * history.
 */
export async function verifyChains(sql: Sql, options: Options): Promise<Verified> {
  const verified: Verified = { entries: 0, states: 0, deletions: 0 };
  const broken = new Set<string>();

  async function reportFirst(breaks: readonly Break[]): Promise<void> {
    for (const found of breaks) {
      const chain = `${found.scope.flagId}.${found.scope.environmentId}`;
      if (broken.has(chain)) continue;
      broken.add(chain);
      await options.broken(found);
    }
  }

  async function checkEnds<End>(
    pages: AsyncGenerator<End[]>,
    breaksOf: (end: End) => Break[],
    kind: "states" | "deletions" | undefined,
  ): Promise<void> {
    for await (const page of pages) {
      await reportFirst(page.flatMap(breaksOf));
      if (kind !== undefined) verified[kind] += page.length;
      options.progress(verified);
    }
  }

  for await (const found of walkChains(sql, verified, options)) await reportFirst([found]);
  await checkEnds(readStates(sql), breaksOfState, "states");
  await checkEnds(
    readFlags(sql),
    ({ flagId, withoutState }) =>
      withoutState.map((environmentId) => ({
        scope: { flagId, environmentId },
        kind: "no_state" as const,
      })),
    undefined,
  );
  await checkEnds(readDeletions(sql), breaksOfDeletion, "deletions");
  await checkEnds(readRecordedEnds(sql), breaksOfRecordedEnd, "deletions");
  return verified;
}

async function* walkChains(
  sql: Sql,
  verified: Verified,
  { progress, head, against }: Options,
): AsyncGenerator<Break> {
  let walk: Walk = { at: "start" };
  let last: { link: Link; position: number } | undefined;
  for await (const links of readLinks(sql)) {
    for (const link of links) {
      const followed = follow(walk, link);
      walk = followed.walk;
      yield* followed.breaks;
      const continues = last !== undefined && isSameScope(last.link, link);
      if (last !== undefined && !continues) await head?.(headOf(last.link, last.position));
      const position = positionOf(link, continues ? last?.position : undefined);
      yield* (await against?.follow(link, position)) ?? [];
      last = { link, position };
    }
    verified.entries += links.length;
    progress(verified);
  }
  yield* finish(walk);
  if (last !== undefined) await head?.(headOf(last.link, last.position));
  yield* (await against?.finish()) ?? [];
}

function breaksOfState({ newest, agrees, isAudited, ...scope }: LiveEnd): Break[] {
  if (newest === undefined) return [{ scope, kind: "no_history" }];
  if (!agrees) return [{ scope, kind: "newest_differs", entry: newest }];
  return isAudited ? [] : [{ scope, kind: "not_audited", entry: newest }];
}

function breaksOfDeletion({ newest, agrees, ...scope }: ChainEnd): Break[] {
  if (newest === undefined) return [{ scope, kind: "no_history_of_deleted" }];
  return agrees ? [] : [{ scope, kind: "newest_differs_from_deleted", entry: newest }];
}

function breaksOfRecordedEnd({ newest, agrees, hasState, ...scope }: RecordedEnd): Break[] {
  if (hasState) return [{ scope, kind: "ended_with_state" }];
  if (newest === undefined) return [{ scope, kind: "no_history_of_ended" }];
  return agrees ? [] : [{ scope, kind: "newest_differs_from_ended", entry: newest }];
}
