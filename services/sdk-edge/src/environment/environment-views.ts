import type { Snapshot } from "../snapshot/snapshot.ts";
import { deriveView, type EnvironmentView } from "./environment-view.ts";

/**
 * The present view of every environment, kept in step with the snapshot. A view is derived when it is
 * first asked for, and from then on with every change; so an edge that starts with the flags of
 * thousands of environments does not prepare those that nobody asks it for.
 */
export type EnvironmentViews = {
  /** An environment that nobody has heard of has no flags. */
  of(environmentId: string): EnvironmentView;
  /**
   * Takes what the snapshot says now about these environments. Answers those that somebody has asked
   * for before.
   */
  update(snapshot: Snapshot, environmentIds: ReadonlySet<string>): readonly string[];
};

export function createEnvironmentViews(): EnvironmentViews {
  const views = new Map<string, EnvironmentView>();
  let environments: Snapshot["environments"] = new Map();

  return {
    of(environmentId) {
      let view = views.get(environmentId);
      if (view === undefined) {
        view = deriveView(environments.get(environmentId));
        views.set(environmentId, view);
      }
      return view;
    },

    update(snapshot, environmentIds) {
      environments = snapshot.environments;
      const known = [...environmentIds].filter((environmentId) => views.has(environmentId));
      for (const environmentId of known)
        views.set(environmentId, deriveView(environments.get(environmentId)));
      return known;
    },
  };
}
