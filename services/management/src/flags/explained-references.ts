import { setImmediate as nextTurn } from "node:timers/promises";
import {
  type Attributes,
  type AudienceList,
  type CompiledAudience,
  type CompiledFlag,
  compile,
  compileAudience,
  findMissing,
  noReferences,
  type References,
  type ResolvedState,
  referredKeys,
  SipHash,
} from "@halyard/evaluation";
import { createProblem, type Problem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import {
  type FoundAudience,
  findAudiences,
  findFingerprintKey,
  findListed,
  findRequired,
} from "./reference-store.ts";

/**
 * The compiled references of a flag and of the flags that it requires, to explain the flag for one user. Their lists
 * contain only the fingerprints of that user.
 */
type ExplainedReferences = {
  references: References;
  /** Time of the last change of each audience. */
  changedAt: ReadonlyMap<string, Date>;
};

/** Maximum size of the audiences and of the flags, in bytes of JSON. They are in memory together. */
const maxBytes = 16 * 1024 * 1024;

/** Loads and compiles the references of a flag. A disabled flag needs none. */
export async function loadReferences(
  sql: Sql,
  scope: { projectId: string; environmentId: string },
  state: ResolvedState,
  user: { attributes: Attributes; onUsed: (ms: number) => void },
): Promise<ExplainedReferences | Problem> {
  if (!state.enabled) return { references: noReferences, changedAt: new Map() };
  const keys = referredKeys(state);
  const flags =
    keys.flags.length === 0 ? [] : await findRequired(sql, scope, { keys: keys.flags, maxBytes });
  const all = [keys, ...(flags ?? []).map(referredKeys)].flatMap((each) => each.audiences);
  const audienceKeys = [...new Set(all)];
  const audiences =
    audienceKeys.length === 0
      ? []
      : await findAudiences(sql, scope.projectId, { keys: audienceKeys, maxBytes });
  if (flags === undefined || audiences === undefined) return tooLargeTogether;
  const compiledAudiences = await compileAudiences(
    sql,
    scope.projectId,
    audiences,
    user.attributes,
  );
  return {
    references: await compileFlags(flags, compiledAudiences, user.onUsed),
    changedAt: new Map(audiences.map(({ key, updatedAt }) => [key, updatedAt])),
  };
}

const tooLargeTogether = createProblem(
  "VALIDATION_001",
  "The required flags or the audiences of the flag exceed 16 MiB together. `POST /api/v1/sdk/evaluate` has no such limit.",
);

async function compileAudiences(
  sql: Sql,
  projectId: string,
  audiences: readonly FoundAudience[],
  attributes: Attributes,
): Promise<Map<string, CompiledAudience>> {
  const listIds = audiences.flatMap(({ listId }) => listId ?? []);
  const key = listIds.length === 0 ? undefined : await findFingerprintKey(sql, projectId);
  const listed =
    key === undefined
      ? new Map<string, Buffer>()
      : await findListed(sql, listIds, fingerprintsOf(attributes, key));
  return new Map(
    audiences.map(({ key: audienceKey, match, listAttribute, listId }) => {
      if (listAttribute === null || listId === null || key === undefined)
        return [audienceKey, compileAudience({ match })];
      const found = listed.get(listId) ?? Buffer.alloc(0);
      const list = oneChunk(listAttribute, key);
      return [audienceKey, compileAudience({ match, list }, [found])];
    }),
  );
}

/** A list whose fingerprints are one chunk. */
const oneChunk = (attribute: string, key: Buffer): AudienceList => ({
  attribute,
  count: 0,
  key: key.toString("hex"),
  chunks: [""],
});

/** Returns the fingerprints of all values of a user, as signed integers. */
function fingerprintsOf(attributes: Attributes, key: Buffer): bigint[] {
  const hash = new SipHash(key);
  const texts = [...attributes.values()]
    .flat()
    .map((value) => (typeof value === "string" ? value : JSON.stringify(value)));
  return texts.map((text) => {
    hash.hash(text);
    return BigInt.asIntN(64, (BigInt(hash.high) << 32n) | BigInt(hash.low));
  });
}

/**
 * Compiles each flag after those that it requires. A flag that lacks a reference is left out, so it counts as not found, as
 * on the edge. This includes all flags of a circle, which only a change of the tables by hand can make. Lets other requests
 * run between two flags.
 */
async function compileFlags(
  states: readonly ResolvedState[],
  audiences: ReadonlyMap<string, CompiledAudience>,
  onUsed: (ms: number) => void,
): Promise<References> {
  const flags = new Map<string, CompiledFlag>();
  const references = { audiences, flags };
  const stateOf = new Map(states.map((state) => [state.key, state]));
  const visited = new Set<string>();
  const compileWithRequired = async (key: string): Promise<void> => {
    const state = stateOf.get(key);
    if (state === undefined || visited.has(key)) return;
    visited.add(key);
    for (const required of referredKeys(state).flags) await compileWithRequired(required);
    if (findMissing(state, references) !== undefined) return;
    const beganMs = performance.now();
    flags.set(key, compile(state, references));
    onUsed(performance.now() - beganMs);
    await nextTurn();
  };
  for (const { key } of states) await compileWithRequired(key);
  return references;
}
