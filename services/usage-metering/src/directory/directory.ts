import {
  isEntryOf,
  type OrganizationEntry,
  type PlanLimits,
  type PlansEntry,
  resolveLimits,
  type SnapshotEntry,
  type Tombstone,
} from "@halyard/contracts";
import { createFlagIndex, type SnapshotPart } from "@halyard/snapshot";
import { createConfigurationSizes } from "./configuration-sizes.ts";

/** The plans, environments, flags and audiences of the snapshot. */
export type Directory = {
  organization(organizationId: string): OrganizationEntry | undefined;
  /** Returns the limits of an organization's plan, or undefined before they have arrived. */
  limitsOf(organizationId: string): PlanLimits | undefined;
  /** Returns the size of the rules and values of an organization's flags, in all environments, and of its audiences. */
  configurationBytesOf(organizationId: string): number;
  /** Returns the environments of a project, in the order of their creation. */
  environmentIdsOf(projectId: string): readonly string[];
  /** Returns the environments of a project that have a flag, in the order of their creation. */
  environmentsOf(flag: { projectId: string; flagId: string }): readonly KnownEnvironment[];
  flagIdsOf(environmentId: string): readonly string[];
  scopes: SnapshotPart;
};

export type KnownEnvironment = { environmentId: string; name: string };

export function createDirectory(): Directory {
  let known = createKnown();
  return {
    organization: (organizationId) => existing(known.organizations.get(organizationId)),
    limitsOf: (organizationId) => known.limits.get(organizationId),
    configurationBytesOf: (organizationId) =>
      known.sizes.sumOf(organizationId, (environmentId) => {
        const environment = known.environments.get(environmentId);
        return environment !== undefined && "deleted" in environment;
      }),
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
    scopes: {
      beginReplacing() {
        const next = createKnown(known.limits);
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

/** Everything but the keys. An organization whose plan is unknown keeps its limits in `former`. */
function createKnown(former?: ReadonlyMap<string, PlanLimits>) {
  let plans: PlansEntry | undefined;
  const limits = new Map(former);
  const organizations = new Map<string, OrganizationEntry | Tombstone>();
  const environments = new Map<string, { version: number; name: string } | Tombstone>();
  /** Ids of environments by project, including deleted ones. */
  const projects = new Map<string, Set<string>>();
  const flags = createFlagIndex();
  const sizes = createConfigurationSizes();
  return {
    ...{ limits, organizations, environments, projects, flags, sizes },
    apply(entry: SnapshotEntry): void {
      if (isEntryOf("plans", entry)) {
        const { value } = entry;
        if ("deleted" in value || value.version <= (plans?.version ?? 0)) return;
        plans = value;
        resolveLimits(limits, organizations, plans);
      } else if (isEntryOf("organization", entry)) {
        const { organizationId } = entry.address;
        putNewer(organizations, organizationId, entry.value);
        const newest = organizations.get(organizationId) ?? entry.value;
        resolveLimits(limits, [[organizationId, newest]], plans);
      } else if (isEntryOf("flag", entry)) {
        const { address, value } = entry;
        if (flags.apply(address, value)) sizes.apply(address, value);
      } else if (isEntryOf("audience", entry)) {
        sizes.applyAudience(entry);
      } else if (isEntryOf("environment", entry)) {
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
