import type { Snapshot } from "../snapshot/snapshot.ts";
import { deriveView, type EnvironmentView, emptyView } from "./environment-view.ts";

/** The present view of every environment, kept in step with the snapshot. */
export type EnvironmentViews = {
  /** An environment that nobody has heard of has no flags. */
  of(environmentId: string): EnvironmentView;
  /**
   * Derives anew what the snapshot says about these environments. Answers those whose values differ
   * from what was answered before; many changes, say of a name, leave them as they were.
   */
  update(snapshot: Snapshot, environmentIds: ReadonlySet<string>): readonly ViewChange[];
};

export type ViewChange = {
  environmentId: string;
  before: EnvironmentView;
  after: EnvironmentView;
};

export function createEnvironmentViews(): EnvironmentViews {
  const views = new Map<string, EnvironmentView>();
  const of = (environmentId: string) => views.get(environmentId) ?? emptyView;

  return {
    of,
    update(snapshot, environmentIds) {
      const changes: ViewChange[] = [];
      for (const environmentId of environmentIds) {
        const before = of(environmentId);
        const environment = snapshot.environments.get(environmentId);
        const after = deriveView(environment);
        if (environment === undefined) views.delete(environmentId);
        else views.set(environmentId, after);
        if (after.etag !== before.etag) changes.push({ environmentId, before, after });
      }
      return changes;
    },
  };
}
