import { type FlagEntry, isEntryOf } from "@halyard/contracts";
import {
  type EnvironmentFlags,
  existingFlag,
  type Snapshot,
  type TakenEntry,
} from "../snapshot/snapshot.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import { EnvironmentView } from "./environment-view.ts";
import { createLinkedAudiences, type LinkedAudiences } from "./linked-audiences.ts";
import { type FlagChange, LinkedFlags, noLinks, refers, replaceFlag } from "./linked-flags.ts";
import { PreparedFlag } from "./prepared-flag.ts";
import { draftOf, draftOfAll, type FlagsDraft, orderFlags } from "./segments.ts";

/**
 * The current view of each environment. The first use of an environment derives its view, and every change of the
 * snapshot updates it. An edge that starts with thousands of environments therefore prepares only those that clients
 * use.
 */
export type EnvironmentViews = {
  /** Returns the view of an environment. An unknown environment has no flags. */
  of(environmentId: string): EnvironmentView;
  /** Applies an update of the snapshot. Returns the changes of the views, at least of those whose values may differ. */
  update(update: SnapshotUpdate): readonly ViewChange[];
  /** Time at which the first wait of a flag ends, by the monotonic clock. Undefined while no flag waits. */
  readonly waitsUntilMs: number | undefined;
  /** Removes the flags that have waited too long for what they refer to. Returns the changes of the views. */
  giveUp(): readonly ViewChange[];
};

/** The view of an environment before and after a change. */
export type ViewChange = {
  readonly environmentId: string;
  readonly before: EnvironmentView;
  readonly after: EnvironmentView;
};

/** A view, and its flags with references. Undefined without any. */
type Held = { readonly view: EnvironmentView; readonly linked: LinkedFlags | undefined };

export function createEnvironmentViews(
  monotonicMs: () => number = () => performance.now(),
): EnvironmentViews {
  const audiences = createLinkedAudiences();
  const held = createHeldViews();
  let environments: Snapshot["environments"] = new Map();

  /** Returns the changed environments, and the linked ones in projects with changed audiences. */
  function affectedBy(changed: ReadonlySet<string>, audiences: ReadonlyMap<string, unknown>) {
    if (audiences.size === 0) return changed;
    const affected = new Set(changed);
    for (const id of held.linkedIds)
      if (audiences.has(environments.get(id)?.projectId ?? "")) affected.add(id);
    return affected;
  }

  return {
    of(environmentId) {
      let known = held.get(environmentId);
      if (known === undefined) {
        const environment = environments.get(environmentId);
        known = derive(environment, { audiences, nowMs: monotonicMs() });
        held.set(environmentId, known);
      }
      return known.view;
    },

    update(update) {
      const { snapshot, changed, isReplacement, taken } = update;
      environments = snapshot.environments;
      const changedAudiences = audiences.update(update);
      const flags = isReplacement ? undefined : flagsByEnvironment(taken);
      const nowMs = monotonicMs();
      const affected = affectedBy(changed.environments, changedAudiences);
      return held.replace(affected, (previous, environmentId) => {
        const environment = environments.get(environmentId);
        if (flags === undefined || environment === undefined)
          return derive(environment, { previous, audiences, nowMs });
        return change(previous, {
          taken: flags.get(environmentId) ?? [],
          keys: changedAudiences.get(environment.projectId ?? "") ?? [],
          ...{ audiences, nowMs },
        });
      });
    },

    get waitsUntilMs() {
      return held.waitsUntilMs();
    },

    giveUp() {
      const nowMs = monotonicMs();
      return held.replace([...held.waitingIds], (previous) => giveUp(previous, nowMs));
    },
  };
}

/** The views by environment. */
function createHeldViews() {
  const views = new Map<string, Held>();
  const linkedIds = new Set<string>();
  const waitingIds = new Set<string>();

  function set(environmentId: string, held: Held): void {
    views.set(environmentId, held);
    const { linked } = held;
    if (linked === undefined) linkedIds.delete(environmentId);
    else linkedIds.add(environmentId);
    if (linked?.waitsUntilMs === undefined) waitingIds.delete(environmentId);
    else waitingIds.add(environmentId);
  }

  return {
    /** The environments with linked flags. */
    linkedIds: linkedIds as ReadonlySet<string>,
    /** The environments with flags that keep their previous state. */
    waitingIds: waitingIds as ReadonlySet<string>,
    get: (environmentId: string) => views.get(environmentId),
    set,

    waitsUntilMs(): number | undefined {
      const all = [...waitingIds].map((id) => views.get(id)?.linked?.waitsUntilMs);
      const known = all.filter((ms) => ms !== undefined);
      return known.length === 0 ? undefined : Math.min(...known);
    },

    /** Replaces the views that are held of some environments. Returns the changes. */
    replace(
      environmentIds: Iterable<string>,
      next: (held: Held, environmentId: string) => Held,
    ): ViewChange[] {
      const changes: ViewChange[] = [];
      for (const environmentId of environmentIds) {
        const before = views.get(environmentId);
        if (before === undefined) continue;
        const after = next(before, environmentId);
        // The end of a wait can change without a change of the view.
        set(environmentId, after);
        if (after.view !== before.view)
          changes.push({ environmentId, before: before.view, after: after.view });
      }
      return changes;
    },
  };
}

function flagsByEnvironment(taken: readonly TakenEntry[]): ReadonlyMap<string, TakenEntry[]> {
  const flags = taken.filter((entry) => isEntryOf("flag", entry));
  return Map.groupBy(flags, ({ address }) => address.environmentId);
}

type DeriveOptions = { previous?: Held; audiences: LinkedAudiences; nowMs: number };

/** Prepares the view of an environment alone. */
export function deriveView(
  environment: EnvironmentFlags | undefined,
  audiences: LinkedAudiences = createLinkedAudiences(),
): EnvironmentView {
  return derive(environment, { audiences, nowMs: 0 }).view;
}

/** Prepares the view of an environment. Flags that `previous` has prepared are reused. */
function derive(
  environment: EnvironmentFlags | undefined,
  { previous, audiences, nowMs }: DeriveOptions,
): Held {
  const known = new Map<FlagEntry, PreparedFlag>();
  for (const { withReplaced } of previous?.view.segments ?? [])
    for (const flag of withReplaced) known.set(flag.entry, flag);
  const flags: PreparedFlag[] = [];
  const referring: FlagEntry[] = [];
  for (const entry of environment?.flags.values() ?? []) {
    const flag = existingFlag(entry);
    if (flag === undefined) continue;
    if (refers(flag)) referring.push(flag);
    else flags.push(known.get(flag) ?? new PreparedFlag(flag));
  }
  const keys = previous?.view.keys;
  if (referring.length === 0)
    return { view: new EnvironmentView(orderFlags(flags), keys), linked: undefined };
  const linked = new LinkedFlags(audiences.find);
  for (const entry of referring) {
    const earlier = previous?.view.find(entry.key);
    const state = previous?.linked?.stateOf(entry.flag_id) ?? {
      form: earlier?.entry.flag_id === entry.flag_id ? earlier : undefined,
      waitsUntilMs: undefined,
    };
    if (state.form !== undefined) flags.push(state.form);
    linked.add(entry, state);
  }
  const draft = draftOfAll(flags);
  linked.changeAll(draft, nowMs);
  return { view: new EnvironmentView(draft.finish(), keys, linked.links), linked };
}

/** Returns the view after entries of its flags were applied, and audiences with these keys have changed. */
function change(
  held: Held,
  given: {
    taken: readonly TakenEntry[];
    keys: Iterable<string>;
    audiences: LinkedAudiences;
    nowMs: number;
  },
): Held {
  const { taken, keys, audiences, nowMs } = given;
  const draft = draftOf(held.view.segments);
  const flags = taken.map(({ before, value }): FlagChange => {
    return { before: existingFlag(before), after: existingFlag(value) };
  });
  const isFirst = held.linked === undefined && flags.some(({ after }) => after && refers(after));
  const linked = isFirst ? new LinkedFlags(audiences.find) : held.linked;
  if (linked === undefined) for (const flag of flags) replaceFlag(draft, flag);
  else linked.change(draft, { flags, audiences: keys, nowMs });
  const after = next(held, draft, linked);
  // A flag that is not found can change without a change of the view, but the configuration has another tag then.
  return after === held && taken.length > 0 ? { ...held, view: copyOf(held.view) } : after;
}

/** Returns the view without the flags that have kept their previous state for too long. */
function giveUp(held: Held, nowMs: number): Held {
  const draft = draftOf(held.view.segments);
  held.linked?.giveUp(draft, nowMs);
  return next(held, draft, held.linked);
}

/** Returns the view after the changes of a draft; `held` itself if nothing has changed. */
function next(held: Held, draft: FlagsDraft, linked: LinkedFlags | undefined): Held {
  const { view } = held;
  const segments = draft.finish();
  const isLinked = linked?.isEmpty === false;
  const links = isLinked ? linked.links : noLinks;
  if (segments === view.segments && links === view.links) return held;
  return {
    view: new EnvironmentView(segments, view.keys, links),
    linked: isLinked ? linked : undefined,
  };
}

function copyOf({ segments, keys, links }: EnvironmentView): EnvironmentView {
  return new EnvironmentView(segments, keys, links);
}
