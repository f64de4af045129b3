import type { FlagEntry, Tombstone } from "@halyard/contracts";

/**
 * The existing flags of each environment, without their rules and names, so that a service can keep hundreds of
 * thousands in memory. Versions decide, not the order of arrival: an older entry does not restore a deleted flag.
 */
export type FlagAddress = { flagId: string; environmentId: string };

type FlagIndex = {
  /** Applies an entry unless it is older. Returns whether the entry was newer. */
  apply(address: FlagAddress, entry: FlagEntry | Tombstone): boolean;
  statusOf(address: FlagAddress): "exists" | "deleted" | "unknown";
  /** Returns the ids of an environment's existing flags. */
  flagIdsOf(environmentId: string): string[];
  /** Returns the project of an environment; undefined if it never had a flag. */
  projectOf(environmentId: string): string | undefined;
  /** Returns whether an entry of this flag has arrived, in any environment. */
  hasFlag(flagId: string): boolean;
};

/** Versions of an environment's flags. Versions of deletions are negative. */
type Environment = { projectId: string | undefined; versions: Map<string, number> };

export function createFlagIndex(): FlagIndex {
  const environments = new Map<string, Environment>();
  /** One string for each flag id, which all environments share. */
  const flagIds = new Map<string, string>();

  function environmentFor(id: string): Environment {
    const known = environments.get(id);
    if (known !== undefined) return known;
    const environment = { projectId: undefined, versions: new Map<string, number>() };
    environments.set(detached(id), environment);
    return environment;
  }

  function sharedId(id: string): string {
    const known = flagIds.get(id);
    if (known !== undefined) return known;
    const shared = detached(id);
    flagIds.set(shared, shared);
    return shared;
  }

  function versionOf({ flagId, environmentId }: FlagAddress): number {
    return environments.get(environmentId)?.versions.get(flagId) ?? 0;
  }

  return {
    apply({ flagId, environmentId }, entry) {
      const environment = environmentFor(environmentId);
      const { versions } = environment;
      if (Math.abs(versions.get(flagId) ?? 0) >= entry.version) return false;
      if ("deleted" in entry) {
        versions.set(sharedId(flagId), -entry.version);
      } else {
        versions.set(sharedId(flagId), entry.version);
        environment.projectId ??= entry.project_id;
      }
      return true;
    },
    statusOf(address) {
      const version = versionOf(address);
      if (version === 0) return "unknown";
      return version > 0 ? "exists" : "deleted";
    },
    flagIdsOf: (environmentId) =>
      [...(environments.get(environmentId)?.versions ?? [])].flatMap(([flagId, version]) =>
        version > 0 ? [flagId] : [],
      ),
    projectOf: (environmentId) => environments.get(environmentId)?.projectId,
    hasFlag: (flagId) => flagIds.has(flagId),
  };
}

/** Copies a string. A slice would keep the whole original string in memory. */
function detached(text: string): string {
  return Buffer.from(text, "latin1").toString("latin1");
}
