import { isEntryOf, type SnapshotEntry } from "@halyard/contracts";
import type { SnapshotPart } from "@halyard/snapshot";

/** Finds the organization of a project, and the project of an environment. A request by session has no key with them. */
export type FindPlace = {
  environment(id: string): { projectId: string; organizationId: string } | undefined;
  project(id: string): { organizationId: string } | undefined;
};

type State = {
  environments: Map<string, { projectId: string; organizationId: string }>;
  projects: Map<string, { organizationId: string }>;
};

/** Keeps the places of the snapshot. A deleted one never returns, because ids are not reused. */
export function createPlaces(): SnapshotPart & FindPlace {
  let state = emptyState();
  return {
    environment: (id) => state.environments.get(id),
    project: (id) => state.projects.get(id),
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

const emptyState = (): State => ({ environments: new Map(), projects: new Map() });

function put({ environments, projects }: State, entry: SnapshotEntry): void {
  if (isEntryOf("environment", entry)) {
    const { address, value } = entry;
    if ("deleted" in value) environments.delete(address.environmentId);
    else
      environments.set(address.environmentId, {
        projectId: value.project_id,
        organizationId: value.organization_id,
      });
  } else if (isEntryOf("project", entry)) {
    const { address, value } = entry;
    if ("deleted" in value) projects.delete(address.projectId);
    else projects.set(address.projectId, { organizationId: value.organization_id });
  }
}
