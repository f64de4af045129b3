import { isDeepStrictEqual } from "node:util";
import {
  type ChangeAudienceList,
  type CreateAudience,
  maxAudiencesOfProject,
  maxChangedEntries,
  maxListEntries,
  type UpdateAudience,
} from "@halyard/contracts";
import { fingerprintBytes } from "@halyard/evaluation";
import { createProblem, isProblem, type Problem } from "@halyard/http";
import type { Sql } from "@halyard/postgres";
import type { TimeAndIds } from "../access/change-context.ts";
import type { Change } from "../access/routes.ts";
import { recordAudit } from "../audit/audit-store.ts";
import { checkAddition, writeWithinLimit } from "../flags/configuration-limit.ts";
import { findReferringStates } from "../flags/reference-store.ts";
import { describeStates, lockReferences } from "../flags/references.ts";
import type { Write } from "../outbox/write.ts";
import type { AudiencePatch } from "../protection/proposal.ts";
import { type Approval, approvalNeeded } from "../protection/protection.ts";
import {
  type Audience,
  type AudienceDecision,
  type AudienceScope,
  type AudienceUse,
  pathOf,
} from "./audience.ts";
import {
  countAudiences,
  deleteAudience,
  findAudience,
  insertAudience,
  insertAudienceHistory,
  lockAudience,
  updateAudience,
  usesOf,
} from "./audience-store.ts";
import {
  checkProjectEntries,
  decideCreate,
  decideDelete,
  decideList,
  decideUpdate,
  type WithCheckedMatch,
} from "./decide-audience.ts";
import {
  type Chunk,
  changeChunk,
  changesByChunk,
  chunkOf,
  divide,
  type FingerprintChange,
  fingerprintsIn,
  keepsDivision,
} from "./fingerprint-chunks.ts";
import {
  countProjectEntries,
  deleteChunks,
  deleteMembers,
  findFingerprints,
  fingerprintKeyOf,
  insertMembers,
  insertUnusedList,
  type Members,
  readChunkSizes,
  readChunks,
  takeUnusedList,
  writeChunks,
} from "./list-store.ts";
import { indivisible, membersOf, type UploadedList } from "./list-upload.ts";

/**
 * The use cases of audiences. Each runs in the transaction of a write. A change locks the audience first. A creation and a
 * deletion lock the references of the project before.
 */
export type ChangedAudience = { audience: Audience; uses: readonly AudienceUse[] };

type ChangeRequest = {
  scope: AudienceScope;
  /** Checks the audience before the change. */
  permit: (current: Audience) => Problem | undefined;
};

/** A change of an audience. `approval` permits changes of audiences that protected environments use. */
type AudienceWrite = Pick<Change, keyof Write | keyof TimeAndIds | "context"> & {
  approval?: Approval | undefined;
};

export async function createAudience(
  change: AudienceWrite,
  scope: { organizationId: string; projectId: string },
  request: WithCheckedMatch<CreateAudience>,
): Promise<ChangedAudience | Problem> {
  const { tx } = change;
  await lockReferences(tx, scope.projectId);
  if ((await countAudiences(tx, scope.projectId)) >= maxAudiencesOfProject) return tooManyAudiences;
  const { organizationId, projectId } = scope;
  const decision = decideCreate({ organizationId, projectId }, request, await change.context());
  const { audience } = decision;
  let isInserted = false;
  const problem = await writeWithinLimit(tx, organizationId, async () => {
    isInserted = await insertAudience(tx, audience);
  });
  if (problem !== undefined) return problem;
  if (!isInserted) return keyTaken(change, audience);
  return record(change, decision, []);
}

async function keyTaken({ tx }: AudienceWrite, audience: Audience): Promise<Problem> {
  if ((await findAudience(tx, audience)) === undefined) return noSuchAudience;
  return createProblem(
    "CONFLICT_001",
    `The project already has an audience with the key ${audience.key}.`,
    { location: pathOf(audience) },
  );
}

/** Changes the settings of an audience, or removes its list. */
export async function changeAudience(
  change: AudienceWrite,
  request: ChangeRequest,
  settings: WithCheckedMatch<UpdateAudience>,
): Promise<ChangedAudience | Problem> {
  const current = await lockPermitted(change, request);
  if (isProblem(current)) return current;
  const uses = await allUses(change, current);
  const decision = decideUpdate(current, settings, uses, await change.context());
  if (decision === "unchanged") return { audience: current, uses };
  const { audience } = decision;
  const patch: AudiencePatch = {
    ...(isDeepStrictEqual(audience.match, current.match) ? {} : { match: audience.match }),
    ...(audience.list === current.list ? {} : { list: null }),
  };
  if (Object.keys(patch).length > 0) {
    const proposal = { ...baseOf(current), kind: "audience", patch } as const;
    const refused = await checkUses(change, uses, { proposals: [proposal] });
    if (refused !== undefined) return refused;
  }
  if (current.list !== null && audience.list === null) await dropList(change, current);
  const problem = await writeWithinLimit(change.tx, audience.organizationId, () =>
    updateAudience(change.tx, audience),
  );
  return problem ?? record(change, decision, uses);
}

/** Removes the chunks of the list of an audience, and leaves its entries to be removed later. */
async function dropList({ tx }: AudienceWrite, { id, list }: Audience): Promise<void> {
  if (list === null) return;
  await deleteChunks(tx, id);
  await insertUnusedList(tx, list.id, 0);
}

/**
 * Checks whether a list of a number of entries could replace that of an audience. It reads without locks, so that
 * `replaceList` checks again.
 */
export async function checkListSize(
  sql: Sql,
  { organizationId, projectId, list }: Audience,
  count: number,
): Promise<Problem | undefined> {
  const added = count - (list?.count ?? 0);
  if (added <= 0) return undefined;
  const before = await countProjectEntries(sql, projectId);
  const problem = checkProjectEntries(before, before + added);
  return problem ?? checkAddition(sql, organizationId, added * fingerprintBytes);
}

/** Replaces the list of an audience by an uploaded one. */
export async function replaceList(
  change: AudienceWrite,
  request: ChangeRequest,
  { attribute, uploaded }: { attribute: string; uploaded: UploadedList },
): Promise<ChangedAudience | Problem> {
  const current = await lockPermitted(change, request);
  if (isProblem(current)) return current;
  if (!(await takeUnusedList(change.tx, uploaded.id))) return uploadTookTooLong;
  const { id, count, fingerprintKey, chunks } = uploaded;
  const list = { id, attribute, count, fingerprintKey, chunks: chunks.map(({ sha256 }) => sha256) };
  const uses = await allUses(change, current);
  const refused = await checkUses(change, uses, { advice: changeEntriesInstead });
  if (refused !== undefined) return refused;
  const decision = decideList(current, { list }, uses, await change.context());
  await dropList(change, current);
  return writeList(change, { current, decision, uses, chunks: new Map(chunks.entries()) });
}

/**
 * Adds entries to the list of an audience, and removes others. Only the chunks of their fingerprints change, unless the
 * list needs another number of chunks.
 */
export async function changeEntries(
  change: AudienceWrite,
  request: ChangeRequest,
  { add = [], remove = [] }: ChangeAudienceList,
): Promise<ChangedAudience | Problem> {
  const current = await lockPermitted(change, request);
  if (isProblem(current)) return current;
  const before = current.list ?? (await emptyList(change, current));
  const key = Buffer.from(before.fingerprintKey, "hex");
  const members = { add: membersOf(add, key), remove: membersOf(remove, key) };
  const { tx } = change;
  const removed = await deleteMembers(tx, before.id, members.remove);
  const added = await insertMembers(tx, before.id, members.add);
  const uses = await allUses(change, current);
  if (current.list !== null && added === 0 && removed === 0) return { audience: current, uses };
  const proposal = { ...baseOf(current), kind: "audience_list", add, remove } as const;
  const refused = await checkUses(change, uses, { proposals: [proposal] });
  if (refused !== undefined) return refused;
  const count = before.count + added - removed;
  if (count > maxListEntries) return tooManyEntries;
  const changed = await changedChunks(change, current, before.id, {
    texts: [...members.remove.texts, ...members.add.texts],
    fingerprints: Buffer.concat([members.remove.fingerprints, members.add.fingerprints]),
  });
  if (isProblem(changed)) return changed;
  const list = { ...before, count, chunks: changed.all };
  const decision = decideList(current, { list, added, removed }, uses, await change.context());
  return writeList(change, { current, decision, uses, chunks: changed.chunks });
}

/** Checks a change of entries, without the database. */
export function checkEntryChange({
  add = [],
  remove = [],
}: ChangeAudienceList): Problem | undefined {
  if (add.length + remove.length > maxChangedEntries)
    return createProblem(
      "VALIDATION_001",
      `/add and /remove must have at most ${maxChangedEntries} entries together`,
    );
  const removed = new Set(remove);
  const index = add.findIndex((member) => removed.has(member));
  if (index === -1) return undefined;
  return createProblem("VALIDATION_001", `/add/${index} must not be in /remove too`);
}

async function emptyList({ tx, newId }: AudienceWrite, { projectId }: Audience) {
  const key = await fingerprintKeyOf(tx, projectId);
  const fingerprintKey = key.toString("hex");
  return { id: newId(), attribute: "id", count: 0, fingerprintKey, chunks: [] };
}

/**
 * Returns the chunks that differ, by position, and the hashes of all chunks. The entries have changed already. Removes
 * the stored chunks if their number changes.
 */
async function changedChunks(
  { tx }: AudienceWrite,
  { id, list }: Audience,
  listId: string,
  members: Members,
): Promise<{ chunks: Map<number, Chunk>; all: string[] } | Problem> {
  const present = await findFingerprints(tx, listId, members);
  const changes = fingerprintsIn(members.fingerprints).map(
    (each): FingerprintChange => [each, present.has(each)],
  );
  const stored = await readChunkSizes(tx, id);
  // An empty list has no chunks, and changes as if it had an empty one.
  const sizes = stored.length === 0 ? [0] : stored;
  const byChunk = changesByChunk(changes, sizes.length);
  const touched = await readChunks(tx, id, [...byChunk.keys()]);
  const changed = new Map(
    [...byChunk].map(([position, ofChunk]) => {
      const bytes = changeChunk(touched.get(position) ?? Buffer.alloc(0), ofChunk);
      return [position, bytes];
    }),
  );
  const sizesAfter = sizes.map((size, position) => changed.get(position)?.length ?? size);
  if (keepsDivision(sizesAfter)) {
    const chunks = new Map([...changed].map(([position, bytes]) => [position, chunkOf(bytes)]));
    const hashes = sizes.map((_, at) => chunks.get(at)?.sha256 ?? list?.chunks[at] ?? "");
    return { chunks, all: hashes };
  }
  const kept = await readChunks(tx, id, [...sizes.keys()]);
  const whole = sizes.flatMap((_, position) => changed.get(position) ?? kept.get(position) ?? []);
  const divided = divide(Buffer.concat(whole));
  if (divided === undefined) return indivisible;
  await deleteChunks(tx, id);
  const chunks = new Map(divided.map(chunkOf).entries());
  return { chunks, all: [...chunks.values()].map(({ sha256 }) => sha256) };
}

/** Writes an audience with another list, and the chunks that differ. */
async function writeList(
  change: AudienceWrite,
  {
    current,
    decision,
    uses,
    chunks,
  }: {
    current: Audience;
    decision: AudienceDecision;
    uses: readonly AudienceUse[];
    chunks: ReadonlyMap<number, Chunk>;
  },
): Promise<ChangedAudience | Problem> {
  const { tx } = change;
  const { audience } = decision;
  const published = new Set(current.list?.chunks);
  change.countMessages(await writeChunks(tx, audience, { chunks, published }));
  const problem = await writeWithinLimit(tx, audience.organizationId, () =>
    updateAudience(tx, audience),
  );
  if (problem !== undefined) return problem;
  // Read under the lock of the organization's sum, so that concurrent changes cannot exceed the limit together.
  const after = await countProjectEntries(tx, audience.projectId);
  const before = after - (audience.list?.count ?? 0) + (current.list?.count ?? 0);
  return checkProjectEntries(before, after) ?? record(change, decision, uses);
}

export async function removeAudience(
  change: AudienceWrite,
  request: ChangeRequest,
): Promise<ChangedAudience | Problem> {
  const { tx } = change;
  await lockReferences(tx, request.scope.projectId);
  const current = await lockPermitted(change, request);
  if (isProblem(current)) return current;
  const { projectId, key } = current;
  const found = await findReferringStates(tx, { projectId, kind: "audience", key }, maxNamed);
  if (found.total > 0)
    return createProblem(
      "CONFLICT_001",
      `The audience is used by ${describeStates(found)}. Remove it from these rules first.`,
    );
  const decision = decideDelete(current, await change.context());
  if (current.list !== null) await insertUnusedList(tx, current.list.id, 0);
  await deleteAudience(tx, current);
  recordAudit(change, [decision.audit]);
  change.publish(decision.messages);
  return { audience: decision.audience, uses: [] };
}

/** Maximum number of states that a message names. */
const maxNamed = 20;

async function lockPermitted(
  { tx }: AudienceWrite,
  { scope, permit }: ChangeRequest,
): Promise<Audience | Problem> {
  const current = await lockAudience(tx, scope);
  if (current === undefined) return noSuchAudience;
  return permit(current) ?? current;
}

async function allUses(
  { tx }: AudienceWrite,
  { projectId, key }: Audience,
): Promise<AudienceUse[]> {
  const uses = await usesOf(tx, { projectId, keys: [key], environmentId: null });
  return uses.get(key) ?? [];
}

/** Writes the records of a change, and publishes its messages. */
async function record(
  change: AudienceWrite,
  decision: AudienceDecision,
  uses: readonly AudienceUse[],
): Promise<ChangedAudience> {
  await insertAudienceHistory(change.tx, decision.history);
  recordAudit(change, [decision.audit]);
  change.publish(decision.messages);
  return { audience: decision.audience, uses };
}

const baseOf = ({ key: audience, version: base_version }: Audience) => ({ audience, base_version });

/**
 * Rejects a change of who is in an audience, without an approval, if protected environments use it. The uses were read
 * under the lock of the audience. A change request that adds a use locks the audience too.
 */
async function checkUses(
  { tx, approval }: AudienceWrite,
  uses: readonly AudienceUse[],
  proposed: Parameters<typeof approvalNeeded>[1],
): Promise<Problem | undefined> {
  if (approval !== undefined || uses.length === 0) return undefined;
  // Locked before the protection is read. A condition on it would skip rows that are being protected.
  const environments = await tx<{ name: string; isProtected: boolean }[]>`
    select name, protection is not null as "isProtected" from environments
    where id = any(${uses.map(({ environmentId }) => environmentId)}::uuid[])
    order by id
    for share`;
  const guarded = environments.filter(({ isProtected }) => isProtected);
  return guarded.length === 0 ? undefined : approvalNeeded(guarded, proposed);
}

const changeEntriesInstead =
  " A request can add and remove entries: use PATCH in place of PUT, in parts of at most 10,000 entries.";

export const noSuchAudience = createProblem(
  "NOT_FOUND_001",
  "There is no such audience in this project.",
);

const tooManyAudiences = createProblem(
  "CONFLICT_001",
  `A project has at most ${maxAudiencesOfProject} audiences.`,
);

const tooManyEntries = createProblem(
  "VALIDATION_001",
  `A list has at most ${maxListEntries} entries.`,
);

const uploadTookTooLong = createProblem(
  "SERVER_002",
  "The upload took too long, and the list of the audience is unchanged. Send it again.",
  { "retry-after": "1" },
);
