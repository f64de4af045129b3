import { isEntryOf } from "@halyard/contracts";
import type { Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import type { TakenEntry } from "../snapshot/take-entries.ts";
import { changeView, deriveView, type EnvironmentView } from "./environment-view.ts";

/**
 * The current view of each environment. The first use of an environment derives its view, and every change of the
 * snapshot updates it. An edge that starts with thousands of environments therefore prepares only those that clients
 * use.
 */
export type EnvironmentViews = {
  /** Returns the view of an environment. An unknown environment has no flags. */
  of(environmentId: string): EnvironmentView;
  /** Applies an update of the snapshot. Returns the changed environments that have a view. */
  update(update: SnapshotUpdate): readonly string[];
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

    update({ snapshot, changed, isReplacement, taken }) {
      environments = snapshot.environments;
      const flags = isReplacement ? undefined : flagsByEnvironment(taken);
      const updated: string[] = [];
      for (const environmentId of changed.environments) {
        const view = views.get(environmentId);
        if (view === undefined) continue;
        const next =
          flags === undefined || !environments.has(environmentId)
            ? deriveView(environments.get(environmentId), view)
            : changeView(view, flags.get(environmentId) ?? []);
        views.set(environmentId, next);
        updated.push(environmentId);
      }
      return updated;
    },
  };
}

function flagsByEnvironment(taken: readonly TakenEntry[]): ReadonlyMap<string, TakenEntry[]> {
  const flags = taken.filter((entry) => isEntryOf("flag", entry));
  return Map.groupBy(flags, ({ address }) => address.environmentId);
}
