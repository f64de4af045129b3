import {
  type EntryOf,
  type EnvironmentEntry,
  isEntryOf,
  type SnapshotEntry,
} from "@halyard/contracts";
import type { SnapshotPart } from "@halyard/snapshot";

/** Finds the organization of a project, and the project of an environment. A request by session has no key with them. */
export type FindPlace = {
  environment(id: string): { projectId: string; organizationId: string } | undefined;
  project(id: string): { organizationId: string } | undefined;
};

/** Returns an environment that is protected, or undefined. */
export type FindProtected = (environmentId: string) => ProtectedEnvironment | undefined;
export type ProtectedEnvironment = { name: string } & NonNullable<EnvironmentEntry["protected"]>;

type State = {
  environments: Map<string, { projectId: string; organizationId: string }>;
  protected: Map<string, ProtectedEnvironment>;
  projects: Map<string, { organizationId: string }>;
};

/** Keeps the places of the snapshot. A deleted one never returns, because ids are not reused. */
export function createPlaces(): SnapshotPart & FindPlace & { findProtected: FindProtected } {
  let state = emptyState();
  return {
    environment: (id) => state.environments.get(id),
    project: (id) => state.projects.get(id),
    findProtected: (id) => state.protected.get(id),
    beginReplacing() {
      const next = emptyState();
      return {
        take: (entry) => put(next, entry),
        finish: () => {
          state = next;
        },
      };
    },
    apply: (entry) => put(state, entry),
  };
}

const emptyState = (): State => ({
  environments: new Map(),
  protected: new Map(),
  projects: new Map(),
});

function put(state: State, entry: SnapshotEntry): void {
  const { projects } = state;
  if (isEntryOf("environment", entry)) putEnvironment(state, entry);
  else if (isEntryOf("project", entry)) {
    const { address, value } = entry;
    if ("deleted" in value) projects.delete(address.projectId);
    else projects.set(address.projectId, { organizationId: value.organization_id });
  }
}

function putEnvironment(state: State, { address, value }: EntryOf<"environment">): void {
  const { environmentId } = address;
  state.environments.delete(environmentId);
  state.protected.delete(environmentId);
  if ("deleted" in value) return;
  const { project_id: projectId, organization_id: organizationId, name } = value;
  state.environments.set(environmentId, { projectId, organizationId });
  if (value.protected !== undefined)
    state.protected.set(environmentId, { name, ...value.protected });
}
