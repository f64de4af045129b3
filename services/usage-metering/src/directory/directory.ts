import { createKeyDirectory, type KeyDirectory, type KeySignatures } from "@halyard/api-keys";
import {
  isEntryOf,
  type OrganizationEntry,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import { createFlagIndex, type FlagAddress, type SnapshotPart } from "@halyard/jetstream";

/** The keys, plans, environments and flags of the snapshot. */
export type Directory = {
  keys: KeyDirectory;
  organization(organizationId: string): OrganizationEntry | undefined;
  /** Returns the environments of a project, in the order of their creation. */
  environmentIdsOf(projectId: string): readonly string[];
  /** Returns the environments of a project that have a flag, in the order of their creation. */
  environmentsOf(flag: { projectId: string; flagId: string }): readonly KnownEnvironment[];
  flagIdsOf(environmentId: string): readonly string[];
  flagExists(scope: FlagScope): boolean;
  /** Everything but the keys. */
  scopes: SnapshotPart;
};

export type KnownEnvironment = { environmentId: string; name: string };
export type FlagScope = FlagAddress;

export function createDirectory(signatures: KeySignatures): Directory {
  const keys = createKeyDirectory(signatures);
  let known = createKnown();
  return {
    keys,
    organization: (organizationId) => existing(known.organizations.get(organizationId)),
    environmentIdsOf: (projectId) =>
      [...(known.projects.get(projectId) ?? [])]
        .toSorted()
        .filter((environmentId) => existing(known.environments.get(environmentId)) !== undefined),
    flagIdsOf: (environmentId) => known.flags.flagIdsOf(environmentId),
    environmentsOf({ projectId, flagId }) {
      const { environments, flags, projects } = known;
      return [...(projects.get(projectId) ?? [])].toSorted().flatMap((environmentId) => {
        const environment = existing(environments.get(environmentId));
        const isThere = flags.statusOf({ flagId, environmentId }) === "exists";
        return environment !== undefined && isThere
          ? { environmentId, name: environment.name }
          : [];
      });
    },
    flagExists: (scope) =>
      known.flags.statusOf(scope) === "exists" && !keys.hasEnded(scope.environmentId),
    scopes: {
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
  const organizations = new Map<string, OrganizationEntry | Tombstone>();
  const environments = new Map<string, { version: number; name: string } | Tombstone>();
  /** Ids of environments by project, including deleted ones. */
  const projects = new Map<string, Set<string>>();
  const flags = createFlagIndex();
  return {
    ...{ organizations, environments, projects, flags },
    apply(entry: SnapshotEntry): void {
      if (isEntryOf("organization", entry))
        putNewer(organizations, entry.address.organizationId, entry.value);
      else if (isEntryOf("flag", entry)) flags.apply(entry.address, entry.value);
      else if (isEntryOf("environment", entry)) {
        const { address, value } = entry;
        putNewer(environments, address.environmentId, value);
        if ("deleted" in value) return;
        const ids = projects.get(value.project_id) ?? new Set();
        projects.set(value.project_id, ids.add(address.environmentId));
      }
    },
  };
}

/** Stores a value unless a newer version is stored. An older entry that arrives later does not undo a deletion. */
function putNewer<Value extends { version: number }>(
  values: Map<string, Value>,
  id: string,
  value: Value,
): void {
  const known = values.get(id);
  if (known === undefined || known.version < value.version) values.set(id, value);
}

function existing<Value extends object>(value: Value | Tombstone | undefined) {
  return value === undefined || "deleted" in value ? undefined : value;
}
