import { isDeleted, type Snapshot } from "../snapshot/snapshot.ts";
import type { SnapshotChange } from "../snapshot/snapshot-holder.ts";
import { changeView, deriveView, type EnvironmentView } from "./environment-view.ts";
import type { EntryChange } from "./segments.ts";

/**
 * The present view of every environment, kept in step with the snapshot. A view is derived when it is
 * first asked for, and from then on with every change; so an edge that starts with the flags of
 * thousands of environments does not prepare those that nobody asks it for.
 */
export type EnvironmentViews = {
  /** An unknown environment has no flags. */
  of(environmentId: string): EnvironmentView;
  /** Takes a change of the snapshot. Returns the changed environments that have a view. */
  update(change: SnapshotChange): readonly string[];
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

    update({ snapshot, changed, whole, taken }) {
      environments = snapshot.environments;
      const changes = whole ? undefined : changesOf(taken);
      const updated: string[] = [];
      for (const environmentId of changed.environments) {
        const view = views.get(environmentId);
        if (view === undefined) continue;
        const next =
          changes === undefined || !environments.has(environmentId)
            ? deriveView(environments.get(environmentId), view)
            : changeView(view, changes.get(environmentId) ?? []);
        views.set(environmentId, next);
        updated.push(environmentId);
      }
      return updated;
    },
  };
}

/** The changes of flags by environment. */
function changesOf(taken: SnapshotChange["taken"]): ReadonlyMap<string, EntryChange[]> {
  const changes = new Map<string, EntryChange[]>();
  for (const { address, before, value } of taken) {
    if (address.kind !== "flag") continue;
    const change = { before: existing(before), after: existing(value) };
    const known = changes.get(address.environmentId);
    if (known === undefined) changes.set(address.environmentId, [change]);
    else known.push(change);
  }
  return changes;
}

/** An entry at the address of a flag, if the flag exists. */
function existing(entry: SnapshotChange["taken"][number]["before"]): EntryChange["after"] {
  return entry === undefined || isDeleted(entry) || entry.kind !== "flag" ? undefined : entry;
}
