import { createKeyDirectory, type KeyDirectory, type KeySignatures } from "@halyard/api-keys";
import {
  type EnvironmentEntry,
  isEntryOf,
  type OrganizationEntry,
  type PlanLimits,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import { createFlagIndex, type FlagAddress, type SnapshotPart } from "@halyard/jetstream";
import { createNewestEntries } from "./newest-entries.ts";

/**
 * What this service knows of keys, plans, environments and flags, in memory: fed from the snapshot, so
 * that nobody is asked. Of a flag it knows only where it exists.
 */
export type KnownOrganization = { plan: string; limits: PlanLimits; projectCount: number };
export type KnownEnvironment = { environmentId: string; name: string };
export type FlagPlace = FlagAddress;

export type Directory = {
  keys: KeyDirectory;
  organization(organizationId: string): KnownOrganization | undefined;
  /** The environments of a project in which a flag exists, in the order of their creation. */
  environmentsOf(flag: { projectId: string; flagId: string }): readonly KnownEnvironment[];
  flagExists(place: FlagPlace): boolean;
  /** Everything but the keys. */
  places: SnapshotPart;
};

export function createDirectory(signatures: KeySignatures): Directory {
  const keys = createKeyDirectory(signatures);
  let known = createKnown();
  return {
    keys,
    organization: (organizationId) => known.organizations.find(organizationId),
    environmentsOf({ projectId, flagId }) {
      const { environments, flags } = known;
      return [...known.environmentsOf(projectId)]
        .toSorted()
        .filter((environmentId) => flags.standing({ flagId, environmentId }) === "exists")
        .flatMap((environmentId) => environments.find(environmentId) ?? []);
    },
    flagExists: (place) =>
      known.flags.standing(place) === "exists" && !keys.hasEnded(place.environmentId),
    places: {
      beginReplacing() {
        const next = createKnown();
        return {
          take: next.apply,
          finish() {
            known = next;
          },
        };
      },
      apply: (entry) => known.apply(entry),
    },
  };
}

/** Everything but the keys. */
function createKnown() {
  const organizations = createNewestEntries<KnownOrganization>();
  const environments = createNewestEntries<KnownEnvironment>();
  const flags = createFlagIndex();
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

  return {
    organizations,
    environments,
    flags,
    environmentsOf: (projectId: string): Iterable<string> => idsByProject.get(projectId) ?? [],
    /** Names of projects are not used here, and the key directory holds the keys. */
    apply(entry: SnapshotEntry): void {
      if (isEntryOf("organization", entry))
        organizations.apply(
          entry.address.organizationId,
          entry.value,
          knownOrganization(entry.value),
        );
      else if (isEntryOf("environment", entry))
        takeEnvironment(entry.address.environmentId, entry.value);
      else if (isEntryOf("flag", entry)) flags.apply(entry.address, entry.value);
    },
  };
}

function knownOrganization(value: OrganizationEntry | Tombstone): KnownOrganization | undefined {
  if (isDeleted(value)) return undefined;
  const { plan, limits, project_count } = value;
  return { plan, limits, projectCount: project_count };
}

function isDeleted(value: object): value is Tombstone {
  return "deleted" in value;
}
