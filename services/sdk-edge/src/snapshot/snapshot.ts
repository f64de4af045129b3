import {
  type AudienceEntry,
  type ChunkEntry,
  type EntryAddress,
  type EntryOf,
  type FlagEntry,
  isEntryOf,
  type KeyEntry,
  type LiveEntry,
  type OrganizationEntry,
  type PlanLimits,
  type PlansEntry,
  resolveLimits,
  type SnapshotEntry,
  type Tombstone,
  tombstoneLifetimeMs,
} from "@halyard/contracts";
import { findUnknown, findUnknownCondition, knownNeeds } from "@halyard/evaluation";
import { AudienceChunk } from "./audience-chunk.ts";

/**
 * The data of an edge. It changes in place, and only within one turn of the event loop, so a reader that does not await
 * sees one consistent state. The content of an entry never changes: another version is another object. `put`
 * only replaces equal parts by shared objects. Once a snapshot is held, only `takeEntries` and `replaceSnapshot` change it.
 *
 * Entries have the names of the contract, which all services share. The cache on disk is written from them and checked
 * against their schemas.
 */
export type Snapshot = {
  /**
   * Identifies the full write of the bucket that the entries come from. Versions are comparable only within one epoch.
   */
  epoch: string;
  plans: PlansEntry | undefined;
  /** The limits of each organization by id, resolved from the plans. */
  limits: Map<string, PlanLimits>;
  organizations: NewestWins<OrganizationEntry | Tombstone>;
  keys: NewestWins<KeyEntry | DeletedKey>;
  environments: Map<string, EnvironmentFlags>;
  /** Deleted environments. Their flags are not kept, and their keys are rejected. */
  deletedEnvironments: NewestWins<DeletedEnvironment>;
  audiences: NewestWins<AudienceEntry | DeletedAudience>;
  /** The ids of the existing audiences of each project. */
  audienceIds: Map<string, Set<string>>;
  /** The chunks of each audience by its id. They can arrive before the audience. */
  chunks: Map<string, AudienceChunks>;
};

/** The chunks of the list of one audience by their SHA-256. */
type AudienceChunks = {
  organizationId: string;
  chunks: NewestWins<AudienceChunk>;
};

/** The flags of one environment by id, including recent deletions. */
export type EnvironmentFlags = {
  organizationId: string;
  environmentId: string;
  /** Undefined until the first live flag is taken. */
  projectId: string | undefined;
  flags: NewestWins<FlagEntry | Tombstone>;
};

/** The deletion of a key. It does not name the organization, which is taken from the key's address in the bucket. */
type DeletedKey = Tombstone & { organization_id: string };

/** The deletion of an environment. Its organization is also taken from the address. */
type DeletedEnvironment = Tombstone & { organization_id: string };

/** The deletion of an audience, with its organization and project from the address. */
type DeletedAudience = Tombstone & { organization_id: string; project_id: string };

export function emptySnapshot(epoch: string): Snapshot {
  return {
    epoch,
    plans: undefined,
    limits: new Map(),
    organizations: new NewestWins(),
    keys: new NewestWins(),
    environments: new Map(),
    deletedEnvironments: new NewestWins(),
    audiences: new NewestWins(),
    audienceIds: new Map(),
    chunks: new Map(),
  };
}

export function isDeleted<E extends object>(entry: E): entry is E & Tombstone {
  return "deleted" in entry;
}

/**
 * Returns the entry of a flag that exists; undefined for a deleted flag. A flag that needs a feature of a later release
 * counts as deleted, because this edge would evaluate only a part of it.
 */
export function existingFlag(entry: TakenEntry["before"]): FlagEntry | undefined {
  if (entry === undefined || isDeleted(entry) || entry.kind !== "flag") return undefined;
  return findUnknown({ needs: entry.needs, targeting_rules: [] }) === undefined ? entry : undefined;
}

/** Returns whether this edge can evaluate an audience. An audience of a later release counts as unknown. */
export function isKnownAudience({ needs = [], match }: AudienceEntry): boolean {
  const areKnown = needs.every((need) => (knownNeeds as readonly string[]).includes(need));
  return areKnown && findUnknownCondition(match.flat()) === undefined;
}

/** Returns the chunk of a list; undefined while it has not arrived or is damaged, or after its deletion. */
export function existingChunk(
  { chunks }: Snapshot,
  audienceId: string,
  sha256: string,
): AudienceChunk | undefined {
  const chunk = chunks.get(audienceId)?.chunks.get(sha256);
  return chunk?.isIntact === true ? chunk : undefined;
}

/** Yields the damaged chunks of an audience. */
export function* damagedChunks({ chunks }: Snapshot, audienceId: string): Generator<AudienceChunk> {
  for (const chunk of chunks.get(audienceId)?.chunks.values() ?? [])
    if (!chunk.isIntact) yield chunk;
}

/** Returns the entry at an address; undefined for the kinds that a snapshot does not keep. */
export function entryAt(snapshot: Snapshot, address: EntryAddress): SnapshotEntry | undefined {
  switch (address.kind) {
    case "plans":
      return entry(address, snapshot.plans);
    case "organization":
      return entry(address, snapshot.organizations.get(address.organizationId));
    case "key":
      return entry(address, snapshot.keys.get(address.keyId));
    case "flag": {
      const environment = snapshot.environments.get(address.environmentId);
      return entry(address, environment?.flags.get(address.flagId));
    }
    case "environment":
      return entry(address, snapshot.deletedEnvironments.get(address.environmentId));
    case "audience":
      return entry(address, snapshot.audiences.get(address.audienceId));
    case "chunk":
      return entry(address, snapshot.chunks.get(address.audienceId)?.chunks.get(address.sha256));
    case "project":
      // No response of an edge depends on a project's entry, which contains its name.
      return undefined;
  }
}

function entry<Address, Value>(address: Address, value: Value | undefined) {
  return value === undefined ? undefined : { address, value };
}

/** Yields the entries of a snapshot, from which `buildSnapshot` creates an equal snapshot. */
export function* entriesOf(snapshot: Snapshot): Generator<SnapshotEntry> {
  if (snapshot.plans !== undefined) yield { address: { kind: "plans" }, value: snapshot.plans };
  for (const [organizationId, value] of snapshot.organizations)
    yield { address: { kind: "organization", organizationId }, value };
  for (const [environmentId, value] of snapshot.deletedEnvironments)
    yield {
      address: { kind: "environment", organizationId: value.organization_id, environmentId },
      value,
    };
  for (const [keyId, value] of snapshot.keys)
    yield { address: { kind: "key", organizationId: value.organization_id, keyId }, value };
  for (const { organizationId, environmentId, flags } of snapshot.environments.values())
    for (const [flagId, value] of flags)
      yield { address: { kind: "flag", organizationId, environmentId, flagId }, value };
  yield* audienceEntriesOf(snapshot);
}

/** Yields the chunks first, as management publishes them. */
function* audienceEntriesOf({ audiences, chunks }: Snapshot): Generator<SnapshotEntry> {
  for (const [audienceId, { organizationId, chunks: ofAudience }] of chunks)
    for (const [sha256, value] of ofAudience)
      yield { address: { kind: "chunk", organizationId, audienceId, sha256 }, value };
  for (const [audienceId, value] of audiences) {
    const { organization_id: organizationId, project_id: projectId } = value;
    yield { address: { kind: "audience", organizationId, projectId, audienceId }, value };
  }
}

/** Returns the number of entries of each kind. Deletions are counted separately. */
export function countEntries(snapshot: Snapshot): Record<EntryCount, number> {
  const counts = {
    ...{ organization: 0, key: 0, flag: 0, environment: 0 },
    ...{ audience: 0, chunk: 0, deleted: 0 },
  };
  counts.environment = snapshot.environments.size;
  counts.deleted = snapshot.deletedEnvironments.size;
  for (const value of snapshot.organizations.values())
    counts[isDeleted(value) ? "deleted" : "organization"] += 1;
  for (const value of snapshot.keys.values()) counts[isDeleted(value) ? "deleted" : "key"] += 1;
  for (const { flags } of snapshot.environments.values())
    for (const value of flags.values()) counts[isDeleted(value) ? "deleted" : "flag"] += 1;
  for (const value of snapshot.audiences.values())
    counts[isDeleted(value) ? "deleted" : "audience"] += 1;
  for (const { chunks } of snapshot.chunks.values()) counts.chunk += chunks.size;
  return counts;
}

type EntryCount = Exclude<LiveEntry["kind"], "plans" | "project"> | "deleted";

/** Returns the number of entries in the lists of all audiences. */
export function countListEntries({ audiences }: Snapshot): number {
  let count = 0;
  for (const value of audiences.values()) if (!isDeleted(value)) count += value.list?.count ?? 0;
  return count;
}

/** An applied entry and the entry that it replaced. `before` is undefined for a new one. */
export type TakenEntry = SnapshotEntry & { before: LiveEntry | Tombstone | undefined };

/**
 * Puts entries into a snapshot, which changes in place. Returns the ids of the changes, and the entries that were new
 * or replaced an older version, in the order of arrival. Versions decide, not arrival: a late or repeated entry changes
 * nothing, and an older version of a deleted flag does not restore it. The same entries in any order result in the same
 * snapshot. The cost depends on the entries alone.
 */
export function takeEntries(
  snapshot: Snapshot,
  entries: Iterable<SnapshotEntry>,
): { changed: ChangedIds; taken: readonly TakenEntry[]; removedChunks: readonly AudienceChunk[] } {
  const removedChunks: AudienceChunk[] = [];
  const environments = new Set<string>();
  const keys = new Set<string>();
  const organizations = new Set<string>();
  const audiences = new Set<string>();
  const taken: TakenEntry[] = [];

  for (const entry of entries) {
    const { address } = entry;
    const before = entryAt(snapshot, address)?.value;
    if (!put(snapshot, entry, removedChunks)) continue;
    taken.push({ ...entry, before });
    if (address.kind === "flag" || address.kind === "environment")
      environments.add(address.environmentId);
    else if (address.kind === "key") keys.add(address.keyId);
    else if (address.kind === "audience" || address.kind === "chunk")
      audiences.add(address.audienceId);
    else if (address.kind === "plans")
      for (const id of snapshot.organizations.keys()) organizations.add(id);
    else organizations.add(address.organizationId);
  }
  return { changed: { environments, keys, organizations, audiences }, taken, removedChunks };
}

/** Builds a snapshot from the entries of a full read. */
export function buildSnapshot(epoch: string, entries: Iterable<SnapshotEntry>): Snapshot {
  const snapshot = emptySnapshot(epoch);
  for (const entry of entries) put(snapshot, entry);
  return snapshot;
}

/**
 * Puts an entry into a snapshot unless the same or a newer version is stored. Returns whether it was put. Appends the
 * chunks that leave the snapshot.
 */
export function put(
  snapshot: Snapshot,
  entry: SnapshotEntry,
  removedChunks: AudienceChunk[] = [],
): boolean {
  if (isEntryOf("plans", entry)) return putPlans(snapshot, entry);
  if (isEntryOf("organization", entry)) return putOrganization(snapshot, entry);
  if (isEntryOf("key", entry)) return snapshot.keys.put(entry.address.keyId, ownedKey(entry));
  if (isEntryOf("environment", entry)) return deleteEnvironment(snapshot, entry);
  if (isEntryOf("flag", entry)) return putFlag(snapshot, entry);
  if (isEntryOf("audience", entry)) return putAudience(snapshot, entry, removedChunks);
  if (isEntryOf("chunk", entry)) return putChunk(snapshot, entry, removedChunks);
  return false;
}

/** Management never deletes the plans, so a deletion is ignored. */
function putPlans(snapshot: Snapshot, { value }: EntryOf<"plans">): boolean {
  if (isDeleted(value) || value.version <= (snapshot.plans?.version ?? 0)) return false;
  snapshot.plans = value;
  resolveLimits(snapshot.limits, snapshot.organizations, value);
  return true;
}

function putOrganization(snapshot: Snapshot, { address, value }: EntryOf<"organization">): boolean {
  if (!snapshot.organizations.put(address.organizationId, value)) return false;
  resolveLimits(snapshot.limits, [[address.organizationId, value]], snapshot.plans);
  return true;
}

function ownedKey({ address, value }: EntryOf<"key">): KeyEntry | DeletedKey {
  return isDeleted(value) ? { ...value, organization_id: address.organizationId } : value;
}

/** Deletes an environment. Its keys stay until their own deletions arrive; the key directory rejects them meanwhile. */
function deleteEnvironment(
  { environments, deletedEnvironments }: Snapshot,
  { address: { environmentId, organizationId }, value }: EntryOf<"environment">,
): boolean {
  if (!isDeleted(value)) return false;
  environments.delete(environmentId);
  return deletedEnvironments.put(environmentId, { ...value, organization_id: organizationId });
}

function putFlag(
  { environments, deletedEnvironments }: Snapshot,
  { address: { organizationId, environmentId, flagId }, value }: EntryOf<"flag">,
): boolean {
  if (deletedEnvironments.has(environmentId)) return false;
  let environment = environments.get(environmentId);
  if (environment === undefined) {
    const flags = new NewestWins<FlagEntry | Tombstone>();
    environment = { organizationId, environmentId, projectId: undefined, flags };
    environments.set(environmentId, environment);
  }
  if (isDeleted(value)) return environment.flags.put(flagId, value);
  // Uses the id from the value, because the id from the address is a part of a longer string that would stay in memory.
  if (!environment.flags.put(value.flag_id, value)) return false;
  shareWithin(environment, value);
  return true;
}

function putAudience(
  snapshot: Snapshot,
  { address, value }: EntryOf<"audience">,
  removedChunks: AudienceChunk[],
): boolean {
  const { audiences, audienceIds } = snapshot;
  if (isDeleted(value)) {
    const { organizationId, projectId, audienceId } = address;
    const owner = { organization_id: organizationId, project_id: projectId };
    if (!audiences.put(audienceId, { ...value, ...owner })) return false;
    audienceIds.get(projectId)?.delete(audienceId);
    removedChunks.push(...removeUnused(snapshot, audienceId, value));
    return true;
  }
  // As for flags, uses the ids from the value.
  const { audience_id: audienceId, project_id: projectId } = value;
  if (!audiences.put(audienceId, value)) return false;
  const ids = audienceIds.get(projectId) ?? new Set();
  audienceIds.set(projectId, ids.add(audienceId));
  removedChunks.push(...removeUnused(snapshot, audienceId, value));
  return true;
}

/**
 * Puts a chunk, or removes a deleted one. Deletions of chunks are not kept, because a list that changes every second
 * leaves hundreds of thousands of them in a week. A chunk is used only if its audience names it, so the audience's entry
 * decides about a chunk that arrives after its deletion.
 */
function putChunk(
  snapshot: Snapshot,
  { address, value }: EntryOf<"chunk">,
  removedChunks: AudienceChunk[],
): boolean {
  const { audiences, chunks } = snapshot;
  const { organizationId, audienceId, sha256 } = address;
  const ofAudience = chunks.get(audienceId) ?? { organizationId, chunks: new NewestWins() };
  const held = ofAudience.chunks.get(sha256);
  if (held !== undefined && held.version >= value.version) return false;
  if (isDeleted(value)) {
    if (held === undefined) return false;
    removeChunk(snapshot, held);
    removedChunks.push(held);
    return true;
  }
  const audience = audiences.get(audienceId);
  if (audience !== undefined && unusedBy(audience)(value)) return false;
  chunks.set(audienceId, ofAudience);
  return ofAudience.chunks.put(value.sha256, AudienceChunk.of(value));
}

/** Removes the chunks that an audience no longer has, and returns them. */
function removeUnused(
  snapshot: Snapshot,
  audienceId: string,
  audience: AudienceEntry | Tombstone,
): AudienceChunk[] {
  const unused = [...(snapshot.chunks.get(audienceId)?.chunks.values() ?? [])].filter(
    unusedBy(audience),
  );
  for (const chunk of unused) removeChunk(snapshot, chunk);
  return unused;
}

/**
 * Returns a function that decides whether an audience does not use a chunk. A chunk of a later version can belong to the
 * next entry of the audience.
 */
function unusedBy(
  audience: AudienceEntry | Tombstone,
): (chunk: Pick<ChunkEntry, "sha256" | "version">) => boolean {
  // An audience of a later release may name its chunks in another form.
  if (!isDeleted(audience) && !isKnownAudience(audience)) return () => false;
  const named = new Set(isDeleted(audience) ? [] : audience.list?.chunks);
  return ({ sha256, version }) => version <= audience.version && !named.has(sha256);
}

function removeChunk({ chunks }: Snapshot, { audience_id: id, sha256 }: AudienceChunk): void {
  const ofAudience = chunks.get(id)?.chunks;
  ofAudience?.delete(sha256);
  if (ofAudience?.size === 0) chunks.delete(id);
}

/**
 * Replaces the parts that flags have in common by one shared object. Parsing creates separate strings and arrays for
 * every entry, which are more than half of its memory.
 */
function shareWithin(environment: EnvironmentFlags, flag: FlagEntry): void {
  environment.projectId ??= flag.project_id;
  flag.organization_id = environment.organizationId;
  if (flag.project_id === environment.projectId) flag.project_id = environment.projectId;
  flag.environment_id = environment.environmentId;
  if (flag.targeting_rules.length === 0) flag.targeting_rules = noRules;
}

const noRules: FlagEntry["targeting_rules"] = [];

/** The ids of everything that differs between two states of a snapshot. Empty if they are equal. */
export type ChangedIds = {
  environments: ReadonlySet<string>;
  keys: ReadonlySet<string>;
  organizations: ReadonlySet<string>;
  /** The audiences that changed themselves, or whose chunks did. */
  audiences: ReadonlySet<string>;
};

export function isNothing(changed: ChangedIds): boolean {
  const { environments, keys, organizations, audiences } = changed;
  return environments.size + keys.size + organizations.size + audiences.size === 0;
}

/** Compares two snapshots. Entries are compared by identity, so shared entries are unchanged. */
export function changedBetween(before: Snapshot | undefined, after: Snapshot): ChangedIds {
  return {
    environments: new Set([
      ...differingIds(before?.environments, after.environments, haveSameFlags),
      ...differingIds(before?.deletedEnvironments, after.deletedEnvironments, Object.is),
    ]),
    keys: differingIds(before?.keys, after.keys, Object.is),
    organizations: new Set([
      ...differingIds(before?.organizations, after.organizations, Object.is),
      ...differingIds(before?.limits, after.limits, Object.is),
    ]),
    audiences: new Set([
      ...differingIds(before?.audiences, after.audiences, Object.is),
      ...differingIds(before?.chunks, after.chunks, haveSameChunks),
    ]),
  };
}

function differingIds<V>(
  before: ReadonlyMap<string, V> | undefined,
  after: ReadonlyMap<string, V>,
  areSame: (one: V, other: V) => boolean,
): ReadonlySet<string> {
  const ids = new Set<string>();
  for (const [id, value] of after) {
    const earlier = before?.get(id);
    if (earlier === undefined || !areSame(earlier, value)) ids.add(id);
  }
  if (before !== undefined) for (const id of before.keys()) if (!after.has(id)) ids.add(id);
  return ids;
}

function haveSameFlags({ flags: before }: EnvironmentFlags, { flags: after }: EnvironmentFlags) {
  return haveSameEntries(before, after);
}

function haveSameChunks({ chunks: before }: AudienceChunks, { chunks: after }: AudienceChunks) {
  return haveSameEntries(before, after);
}

function haveSameEntries<V>(before: ReadonlyMap<string, V>, after: ReadonlyMap<string, V>) {
  if (before.size !== after.size) return false;
  for (const [id, entry] of after) if (before.get(id) !== entry) return false;
  return true;
}

export type Stamped = { version: number; committed_at: string };

/**
 * A map that keeps the newest version of each entry, regardless of the order of arrival. A deletion is also an entry:
 * while it is kept, no older version can replace it.
 *
 * The map changes in place, because copying it for each change would cost as much as all of its entries. Readers get it
 * as a `ReadonlyMap`.
 */
class NewestWins<E extends Stamped> extends Map<string, E> {
  /** Ids of deleted entries in the order of arrival; undefined before the first. */
  #deletions: Set<string> | undefined;

  /** Stores an entry unless the same or a newer version is stored. Returns whether it was stored. */
  put(id: string, entry: E): boolean {
    const held = this.get(id);
    if (held !== undefined && held.version >= entry.version) return false;
    this.set(id, entry);
    this.#deletions?.delete(id);
    if ("deleted" in entry) {
      this.#deletions ??= new Set();
      this.#deletions.add(id);
    }
    this.#forgetDeletions(entry.committed_at);
    return true;
  }

  /**
   * Removes the deletions that are older than their lifetime. Their age is measured by the time of the current change,
   * so that memory stays bounded without a clock or a timer.
   */
  #forgetDeletions(committedAt: string): void {
    if (this.#deletions === undefined) return;
    const forgottenBefore = Date.parse(committedAt) - tombstoneLifetimeMs;
    for (const id of this.#deletions) {
      const deletion = this.get(id);
      if (deletion !== undefined && Date.parse(deletion.committed_at) >= forgottenBefore) return;
      this.#deletions.delete(id);
      this.delete(id);
    }
  }
}
