import type {
  EntryAddress,
  FlagEntry,
  KeyEntry,
  LiveEntry,
  OrganizationEntry,
  Tombstone,
} from "@halyard/contracts";
import { type Changed, isNothing } from "./changed.ts";
import { type DraftOf, draftOf } from "./newest-wins.ts";
import { type EnvironmentFlags, emptySnapshot, isDeleted, type Snapshot } from "./snapshot.ts";

/** An entry as it stands in the bucket: where, and what. */
export type Entry = { address: EntryAddress; value: LiveEntry | Tombstone };

export type Reduction = {
  snapshot: Snapshot;
  changed: Changed;
  /** The entries that were news, in the order in which they came. */
  taken: readonly Entry[];
};

/**
 * Entries in, the next snapshot and what changed out. Versions decide, not arrival: an entry that
 * comes late or twice changes nothing, a deleted flag stays deleted whatever older news of it turns
 * up, and the same entries in any order end in the same snapshot.
 */
export function reduce(snapshot: Snapshot, entries: Iterable<Entry>): Reduction {
  const organizations = draftOf(snapshot.organizations);
  const keys = draftOf(snapshot.keys);
  const environments = draftEnvironments(snapshot.environments);
  const changed = {
    environments: new Set<string>(),
    keys: new Set<string>(),
    organizations: new Set<string>(),
  };
  const taken: Entry[] = [];

  /** Puts an entry in its place. Answers whether it was news. */
  function take({ address, value }: Entry): boolean {
    switch (address.kind) {
      case "organization":
        if (!organizations.put(address.organizationId, value as OrganizationEntry | Tombstone))
          return false;
        changed.organizations.add(address.organizationId);
        return true;
      case "key":
        if (!keys.put(address.keyId, ownedKey(address.organizationId, value))) return false;
        changed.keys.add(address.keyId);
        return true;
      case "flag":
        if (!environments.put(address, value as FlagEntry | Tombstone)) return false;
        changed.environments.add(address.environmentId);
        return true;
      case "project":
      case "environment":
        // Their names are for people; no answer of an edge depends on them.
        return false;
    }
  }

  for (const entry of entries) if (take(entry)) taken.push(entry);
  if (isNothing(changed)) return { snapshot, changed, taken };
  const next = {
    epoch: snapshot.epoch,
    organizations: organizations.finish(),
    keys: keys.finish(),
    environments: environments.finish(),
  };
  return { snapshot: next, changed, taken };
}

/** The snapshot that a full read describes, whatever was known before. */
export function buildSnapshot(epoch: string, entries: Iterable<Entry>): Snapshot {
  return reduce(emptySnapshot(epoch), entries).snapshot;
}

function ownedKey(organizationId: string, value: LiveEntry | Tombstone) {
  return isDeleted(value) ? { ...value, organization_id: organizationId } : (value as KeyEntry);
}

type FlagAddress = Extract<EntryAddress, { kind: "flag" }>;
type EnvironmentDraft = {
  before: EnvironmentFlags;
  flags: DraftOf<FlagEntry | Tombstone>;
};

/** Environments in the making: each is copied once, however many of its flags change together. */
function draftEnvironments(original: ReadonlyMap<string, EnvironmentFlags>) {
  const drafts = new Map<string, EnvironmentDraft>();
  const shared = new Map<string, string>();

  function draftOfEnvironment({ organizationId, environmentId }: FlagAddress): EnvironmentDraft {
    const known = drafts.get(environmentId);
    if (known !== undefined) return known;
    const before = original.get(environmentId) ?? {
      organizationId,
      environmentId,
      flags: new Map<string, FlagEntry | Tombstone>(),
    };
    const draft = { before, flags: draftOf(before.flags) };
    drafts.set(environmentId, draft);
    return draft;
  }

  return {
    put(address: FlagAddress, value: FlagEntry | Tombstone): boolean {
      const { before, flags } = draftOfEnvironment(address);
      if (isDeleted(value)) return flags.put(address.flagId, value);
      return flags.put(value.flag_id, withSharedIds(value, before, shared));
    },

    finish(): ReadonlyMap<string, EnvironmentFlags> {
      const next = new Map(original);
      for (const [environmentId, { before, flags }] of drafts) {
        const finished = flags.finish();
        if (finished !== before.flags) next.set(environmentId, { ...before, flags: finished });
      }
      return next;
    },
  };
}

/**
 * Every entry comes with strings of its own. A hundred thousand flags of a few hundred environments
 * need each id of an environment, project and organization only once.
 */
function withSharedIds(
  flag: FlagEntry,
  environment: EnvironmentFlags,
  shared: Map<string, string>,
): FlagEntry {
  let projectId = shared.get(flag.project_id);
  if (projectId === undefined) {
    projectId = flag.project_id;
    shared.set(projectId, projectId);
  }
  return {
    ...flag,
    organization_id: environment.organizationId,
    project_id: projectId,
    environment_id: environment.environmentId,
  };
}
