import type { ReferredKeys } from "./references.ts";

/**
 * A flag that refers to audiences or to other flags by their keys. A disabled flag refers to no flags, because its value
 * does not depend on them.
 */
export type Referrer = ReferredKeys & { readonly id: string; readonly key: string };

/** The start of a change: referrers by id, audiences and flags by key. */
export type ChangedReferences = {
  referrers: Iterable<string>;
  audiences: Iterable<string>;
  flags: Iterable<string>;
};

/** The ids of the flags that a change reaches. */
type Reached = {
  /** A flag comes after the flags that it requires. */
  ordered: readonly string[];
  /** The flags of a circle of requirements, and their dependents. A change reaches all flags of a circle together. */
  circular: readonly string[];
};

/**
 * The references of the flags of an environment. It determines the flags to compile again after a change, and their
 * order, because a compiled flag contains the audiences and flags that it refers to. Flags without references are not in
 * it.
 */
export class ReferenceGraph {
  readonly #referrers = new Map<string, Referrer>();
  readonly #ids = new KeyIndex();
  readonly #byAudience = new KeyIndex();
  readonly #byFlag = new KeyIndex();

  /** Returns the flag with an id. */
  of(id: string): Referrer | undefined {
    return this.#referrers.get(id);
  }

  /** Returns the ids of the flags with a key. */
  idsOf(key: string): ReadonlySet<string> {
    return this.#ids.of(key);
  }

  /** Adds a flag, or replaces the one with the same id. */
  put(referrer: Referrer): void {
    this.remove(referrer.id);
    this.#referrers.set(referrer.id, referrer);
    this.#ids.add(referrer.key, referrer.id);
    for (const key of referrer.audiences) this.#byAudience.add(key, referrer.id);
    for (const key of referrer.flags) this.#byFlag.add(key, referrer.id);
  }

  remove(id: string): void {
    const referrer = this.#referrers.get(id);
    if (referrer === undefined) return;
    this.#referrers.delete(id);
    this.#ids.delete(referrer.key, id);
    for (const key of referrer.audiences) this.#byAudience.delete(key, id);
    for (const key of referrer.flags) this.#byFlag.delete(key, id);
  }

  /** Returns the flags that a change reaches, directly or through flags that they require. */
  reachedBy({ referrers, audiences, flags }: ChangedReferences): Reached {
    if (this.#referrers.size === 0) return nothing;
    const reached = new Set<Referrer>();
    const keys = new Set(flags);
    const add = (ids: Iterable<string>) => {
      for (const id of ids) {
        const referrer = this.#referrers.get(id);
        if (referrer === undefined) continue;
        reached.add(referrer);
        keys.add(referrer.key);
      }
    };
    add(referrers);
    for (const key of audiences) add(this.#byAudience.of(key));
    // The loop also visits the keys that it adds.
    for (const key of keys) add(this.#byFlag.of(key));
    return this.#order(reached);
  }

  /** Removes flags without unordered requirements until none is left. The remaining ones are circular. */
  #order(reached: ReadonlySet<Referrer>): Reached {
    const flagsLeft = new KeyIndex();
    for (const { id, key } of reached) flagsLeft.add(key, id);
    const openRequirements = new Map<string, number>();
    const ordered: string[] = [];
    for (const { id, flags } of reached) {
      const open = flags.reduce((sum, key) => sum + flagsLeft.of(key).size, 0);
      openRequirements.set(id, open);
      if (open === 0) ordered.push(id);
    }
    for (const id of ordered)
      for (const dependent of this.#byFlag.of(this.#referrers.get(id)?.key ?? "")) {
        const open = (openRequirements.get(dependent) ?? 0) - 1;
        openRequirements.set(dependent, open);
        if (open === 0) ordered.push(dependent);
      }
    const circular = [...openRequirements].flatMap(([id, open]) => (open > 0 ? [id] : []));
    return { ordered, circular };
  }
}

/** Sets of ids by key. */
class KeyIndex {
  readonly #ids = new Map<string, Set<string>>();

  of(key: string): ReadonlySet<string> {
    return this.#ids.get(key) ?? noIds;
  }

  add(key: string, id: string): void {
    const ids = this.#ids.get(key) ?? new Set();
    this.#ids.set(key, ids.add(id));
  }

  delete(key: string, id: string): void {
    const ids = this.#ids.get(key);
    if (ids?.delete(id) && ids.size === 0) this.#ids.delete(key);
  }
}

const noIds: ReadonlySet<string> = new Set();
const nothing: Reached = { ordered: [], circular: [] };
