import { createKeyDirectory, type KeyDirectory } from "@halyard/api-keys";
import type {
  EnvironmentEntry,
  KeyEntry,
  LiveEntry,
  OrganizationEntry,
  PlanLimits,
  Tombstone,
} from "@halyard/contracts";
import type { SnapshotEntry } from "@halyard/jetstream";
import { createNewestEntries } from "./newest-entries.ts";

/**
 * What this service knows of keys, plans, environments and flags, in memory: fed from the snapshot, so
 * that nobody is asked. Of a flag it knows only where it exists.
 */
export type KnownOrganization = { plan: string; limits: PlanLimits; projectCount: number };
export type KnownEnvironment = { environmentId: string; name: string };
export type FlagPlace = { flagId: string; environmentId: string };

export type Directory = {
  keys: KeyDirectory;
  organization(organizationId: string): KnownOrganization | undefined;
  /** The environments of a project in which a flag exists, in the order of their creation. */
  environmentsOf(flag: { projectId: string; flagId: string }): readonly KnownEnvironment[];
  flagExists(place: FlagPlace): boolean;
  /** Takes a whole snapshot in place of what is known. */
  replace(entries: readonly SnapshotEntry[]): void;
  apply(entry: SnapshotEntry): void;
};

export function createDirectory(): Directory {
  const keys = createKeyDirectory();
  const organizations = createNewestEntries<KnownOrganization>();
  const environments = createNewestEntries<KnownEnvironment>();
  const flags = createNewestEntries<"exists">();
  /** Environments stay in their project for ever. */
  const idsByProject = new Map<string, Set<string>>();

  function takeEnvironment(environmentId: string, entry: EnvironmentEntry | Tombstone): void {
    environments.apply(
      environmentId,
      entry,
      isDeleted(entry) ? undefined : { environmentId, name: entry.name },
    );
    if (isDeleted(entry)) return;
    const ids = idsByProject.get(entry.project_id) ?? new Set();
    idsByProject.set(entry.project_id, ids.add(environmentId));
  }

  function apply({ address, value }: SnapshotEntry): void {
    switch (address.kind) {
      case "organization":
        organizations.apply(address.organizationId, value, knownOrganization(value));
        return;
      case "environment":
        takeEnvironment(address.environmentId, value as EnvironmentEntry | Tombstone);
        return;
      case "key":
        keys.apply(address.keyId, value as KeyEntry | Tombstone);
        return;
      case "flag":
        flags.apply(flagKey(address), value, isDeleted(value) ? undefined : "exists");
        return;
      case "project":
        // Its name is for people; nothing here depends on it.
        return;
    }
  }

  const flagExists = (place: FlagPlace) => flags.find(flagKey(place)) !== undefined;
  return {
    keys,
    organization: organizations.find,
    environmentsOf({ projectId, flagId }) {
      const ids = [...(idsByProject.get(projectId) ?? [])].toSorted();
      return ids
        .filter((environmentId) => flagExists({ flagId, environmentId }))
        .flatMap((environmentId) => environments.find(environmentId) ?? []);
    },
    flagExists,
    replace(entries) {
      for (const kind of [organizations, environments, flags, idsByProject]) kind.clear();
      keys.replace([]);
      for (const entry of entries) apply(entry);
    },
    apply,
  };
}

function knownOrganization(value: LiveEntry | Tombstone): KnownOrganization | undefined {
  if (isDeleted(value)) return undefined;
  const { plan, limits, project_count } = value as OrganizationEntry;
  return { plan, limits, projectCount: project_count };
}

function flagKey({ flagId, environmentId }: FlagPlace): string {
  return `${environmentId}.${flagId}`;
}

function isDeleted(value: LiveEntry | Tombstone): value is Tombstone {
  return "deleted" in value;
}
