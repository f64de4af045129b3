import type { Source } from "../client.ts";
import { addCounts, type Counts } from "./counts.ts";
import { Flag, haveSameSettings } from "./flag.ts";
import type { FlagRules, Rules, RulesEvent, UnsupportedFlag } from "./parse-rules.ts";

/**
 * The flags in memory, with the tag that the service gave them. A change is applied in one synchronous step, so no
 * evaluation sees a part of it. The client sends the tag with every request. Services that have older flags then return
 * none, so every rule set that arrives can be applied.
 */
export class RuleSet {
  #flags = new Map<string, Flag>();
  #unsupported = new Map<string, UnsupportedFlag>();
  /** Counts of flags that were replaced or removed before they were reported. */
  #earlierCounts = new Map<string, Counts>();
  #etag: string | undefined = undefined;
  #environmentId: string | undefined = undefined;
  #source: Source = "none";

  get source(): Source {
    return this.#source;
  }

  /** The tag of these flags; undefined if they have none, as those of a bootstrap object. */
  get etag(): string | undefined {
    return this.#etag;
  }

  get environmentId(): string | undefined {
    return this.#environmentId;
  }

  get flags(): ReadonlyMap<string, Flag> {
    return this.#flags;
  }

  /** Flags that this version cannot evaluate. They count as not found. */
  get unsupported(): ReadonlyMap<string, UnsupportedFlag> {
    return this.#unsupported;
  }

  /** Records that the service confirmed these flags. */
  confirm(source: Source): void {
    this.#source = source;
  }

  /** Replaces all flags. Returns the keys whose settings changed, including added and removed flags. */
  replace(
    { environmentId, flags, unsupported }: Rules,
    etag: string | undefined,
    source: Source,
  ): string[] {
    const previous = this.#flags;
    const next = new Map<string, Flag>();
    const changed: string[] = [];
    for (const [key, rules] of flags) {
      const flag = this.#next(previous.get(key), rules);
      if (flag !== previous.get(key)) changed.push(key);
      next.set(key, flag);
    }
    for (const [key, flag] of previous) {
      if (next.has(key)) continue;
      this.#keepCounts(key, flag);
      changed.push(key);
    }
    this.#flags = next;
    this.#unsupported = new Map(unsupported);
    this.#environmentId = environmentId;
    this.#etag = etag;
    this.#source = source;
    return changed;
  }

  /** Applies a change. Returns the keys whose settings changed, including added and removed flags. */
  apply({ flags, removed, unsupported }: RulesEvent, etag: string, source: Source): string[] {
    const changed: string[] = [];
    for (const [key, rules] of flags) {
      this.#unsupported.delete(key);
      const previous = this.#flags.get(key);
      const flag = this.#next(previous, rules);
      if (flag === previous) continue;
      this.#flags.set(key, flag);
      changed.push(key);
    }
    for (const key of removed) this.#unsupported.delete(key);
    for (const [key, flag] of unsupported) this.#unsupported.set(key, flag);
    for (const key of [...removed, ...unsupported.keys()]) {
      const flag = this.#flags.get(key);
      if (flag === undefined || flags.has(key)) continue;
      this.#keepCounts(key, flag);
      this.#flags.delete(key);
      changed.push(key);
    }
    this.#etag = etag;
    this.#source = source;
    return changed;
  }

  /** Returns the evaluations of each flag since the last call, and sets them to zero. */
  takeCounts(): Map<string, Counts> {
    const counts = this.#earlierCounts;
    this.#earlierCounts = new Map();
    for (const [key, flag] of this.#flags) addTo(counts, key, flag.takeCounts());
    return counts;
  }

  /** Returns the flag with these rules: the previous one, with its compiled rules, if its settings are the same. */
  #next(previous: Flag | undefined, rules: FlagRules): Flag {
    if (previous === undefined) return new Flag(rules);
    if (haveSameSettings(previous.rules, rules)) return previous;
    this.#keepCounts(rules.key, previous);
    return new Flag(rules);
  }

  #keepCounts(key: string, flag: Flag): void {
    addTo(this.#earlierCounts, key, flag.takeCounts());
  }
}

function addTo(counts: Map<string, Counts>, key: string, added: Counts | undefined): void {
  if (added !== undefined) counts.set(key, addCounts(added, counts.get(key)));
}
