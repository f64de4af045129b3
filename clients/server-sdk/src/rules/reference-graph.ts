import type { ReferredKeys } from "@halyard/evaluation";

/** The references between flags and audiences, in both directions. Flags without references are not in it. */
export class ReferenceGraph {
  readonly #references = new Map<string, ReferredKeys>();
  readonly #byAudience = new Map<string, Set<string>>();
  readonly #byFlag = new Map<string, Set<string>>();

  of(key: string): ReferredKeys | undefined {
    return this.#references.get(key);
  }

  set(key: string, references: ReferredKeys): void {
    this.delete(key);
    this.#references.set(key, references);
    for (const each of references.audiences) addTo(this.#byAudience, each, key);
    for (const each of references.flags) addTo(this.#byFlag, each, key);
  }

  delete(key: string): void {
    const known = this.#references.get(key);
    if (known === undefined) return;
    this.#references.delete(key);
    for (const each of known.audiences) removeFrom(this.#byAudience, each, key);
    for (const each of known.flags) removeFrom(this.#byFlag, each, key);
  }

  /**
   * Returns the flags that a change of these audiences and flags affects, also through other flags. Each follows those
   * that it requires. Flags in a circle, and those that require them, are in `unordered`.
   */
  affectedBy(changed: ReferredKeys): { ordered: readonly string[]; unordered: readonly string[] } {
    const affected = new Set<string>();
    if (this.#references.size === 0) return { ordered: [], unordered: [] };
    const addAll = (keys: Iterable<string> = []) => {
      for (const key of keys) affected.add(key);
    };
    for (const key of changed.audiences) addAll(this.#byAudience.get(key));
    for (const key of changed.flags) {
      if (this.#references.has(key)) affected.add(key);
      addAll(this.#byFlag.get(key));
    }
    // The loop also visits the keys that it adds.
    for (const key of affected) addAll(this.#byFlag.get(key));
    const ordered = this.#order(affected);
    const known = new Set(ordered);
    return { ordered, unordered: [...affected].filter((key) => !known.has(key)) };
  }

  #order(affected: ReadonlySet<string>): string[] {
    const waitingFor = new Map<string, number>();
    for (const key of affected) {
      const required = this.#references.get(key)?.flags ?? [];
      waitingFor.set(key, required.filter((each) => affected.has(each)).length);
    }
    const ordered = [...affected].filter((key) => waitingFor.get(key) === 0);
    // The loop also visits the keys that it appends.
    for (const key of ordered) {
      for (const dependent of this.#byFlag.get(key) ?? []) {
        const left = (waitingFor.get(dependent) ?? 0) - 1;
        waitingFor.set(dependent, left);
        if (left === 0) ordered.push(dependent);
      }
    }
    return ordered;
  }
}

function addTo(sets: Map<string, Set<string>>, key: string, member: string): void {
  const known = sets.get(key);
  if (known === undefined) sets.set(key, new Set([member]));
  else known.add(member);
}

function removeFrom(sets: Map<string, Set<string>>, key: string, member: string): void {
  const known = sets.get(key);
  known?.delete(member);
  if (known?.size === 0) sets.delete(key);
}
