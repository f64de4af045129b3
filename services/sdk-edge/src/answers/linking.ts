/**
 * Decides which flags of an environment are prepared again after a change, and in which order. A prepared flag contains
 * the audiences and the flags that it refers to. Flags without references are not part of the graph.
 */

/** A flag that refers to audiences or to other flags, all by their keys. */
export type Referrer = {
  id: string;
  key: string;
  audiences: readonly string[];
  /** The required flags. Empty for a disabled flag, whose value does not depend on them. */
  flags: readonly string[];
};

/** The start of a change: referrers by id, audiences and flags by key. */
export type Changed = {
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

export class ReferenceGraph {
  readonly #referrers = new Map<string, Referrer>();
  readonly #ids = new KeyIndex();
  readonly #byAudience = new KeyIndex();
  readonly #byFlag = new KeyIndex();

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
  reachedBy({ referrers, audiences, flags }: Changed): Reached {
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

/** Time for which a flag keeps its previous state while an audience or a chunk of a list is missing. */
export const maxWaitMs = 30_000;

/** The references of a flag, if all of them are found. */
export type Resolved<References> =
  | { found: "all"; references: References }
  /** An audience or a chunk has not arrived, or a required flag lacks one. */
  | { found: "some" }
  /** A required flag does not exist. */
  | { found: "never" };

/** The state of a flag with references. */
export type LinkState<Form> = {
  /** The last complete form. Undefined without one, and for a flag that counts as not found. */
  form: Form | undefined;
  /** Time at which the wait ends or has ended. Undefined while nothing is missing. */
  waitsUntilMs: number | undefined;
};

/**
 * Decides the next state of a flag. While something is missing, the flag keeps its previous form, for 30 s in total:
 * further changes do not extend the wait. After that, and without a previous form, it is not found.
 */
export function nextLinkState<References, Form>(
  { form, waitsUntilMs = Number.NaN }: LinkState<Form>,
  resolved: Resolved<References>,
  { nowMs, prepare }: { nowMs: number; prepare: (references: References) => Form },
): LinkState<Form> {
  if (resolved.found === "all")
    return { form: prepare(resolved.references), waitsUntilMs: undefined };
  if (resolved.found === "never") return { form: undefined, waitsUntilMs: undefined };
  const untilMs = Number.isNaN(waitsUntilMs) ? nowMs + maxWaitMs : waitsUntilMs;
  return { form: nowMs < untilMs ? form : undefined, waitsUntilMs: untilMs };
}
