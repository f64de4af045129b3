import { ReferenceGraph, type ReferredKeys, referredKeys } from "@halyard/evaluation";
import type { Source } from "../client.ts";
import { Audiences } from "./audiences.ts";
import { addCounts, type Counts } from "./counts.ts";
import { findLinks, type Missing } from "./find-links.ts";
import { Flag, haveSameSettings } from "./flag.ts";
import type { Links } from "./links.ts";
import type { FlagRules, Rules, RulesChange, UnsupportedFlag } from "./parse-rules.ts";

/** A flag whose rules cannot be evaluated, because something that they refer to is missing. */
type WithheldFlag = Missing & {
  readonly rules: FlagRules;
  /** The revision since which the previous state is not the newest one. */
  readonly staleSince: number;
  /** The revision that the flag waits for. Everything that was the newest version then, or is later, will do. */
  readonly asOf: number;
  /** True if the flag got a newer state, or was given up, since it began to wait. */
  readonly isSettled: boolean;
};

/**
 * The flags in memory, with the tag that the service gave them. A change is applied in one synchronous step, so no
 * evaluation sees a part of it. The client sends the tag with every request. Services that have older flags then return
 * none, so every rule set that arrives can be applied.
 *
 * A flag that refers to audiences or to other flags is withheld while one of them is missing. If only chunks of lists
 * are missing, the flag keeps its previous state until they are here or `giveUp` is called. If lists change meanwhile, it
 * takes each version that is complete, unless its own rules need a later one. Otherwise it counts as not found.
 */
export class RuleSet {
  readonly #flags = new Map<string, Flag>();
  readonly #unsupported = new Map<string, UnsupportedFlag>();
  readonly #withheld = new Map<string, WithheldFlag>();
  /** The references of enabled flags. */
  readonly #references = new ReferenceGraph();
  readonly #audiences = new Audiences();
  /** Counts of flags that were replaced or removed before they were reported. */
  #earlierCounts = new Map<string, Counts>();
  #etag: string | undefined = undefined;
  #projectId: string | undefined = undefined;
  #environmentId: string | undefined = undefined;
  #source: Source = "none";
  #revision = 0;

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

  /** Returns the ids of the project and the environment. Undefined before the first rule set. */
  get flagSetId(): string | undefined {
    return this.#projectId && `${this.#projectId}/${this.#environmentId}`;
  }

  /** Rises when anything in memory changes. */
  get revision(): number {
    return this.#revision;
  }

  /** The flags that can be evaluated. */
  get flags(): ReadonlyMap<string, Flag> {
    return this.#flags;
  }

  /** Flags that this version cannot evaluate. They count as not found. */
  get unsupported(): ReadonlyMap<string, UnsupportedFlag> {
    return this.#unsupported;
  }

  get withheld(): ReadonlyMap<string, WithheldFlag> {
    return this.#withheld;
  }

  /** True while a flag cannot be evaluated as received only because chunks of lists are missing. */
  get isWaiting(): boolean {
    for (const { isWaiting } of this.#withheld.values()) if (isWaiting) return true;
    return false;
  }

  /** True while a flag waits that has neither got a newer state meanwhile nor been given up. */
  get isUnsettled(): boolean {
    for (const { isWaiting, isSettled } of this.#withheld.values())
      if (isWaiting && !isSettled) return true;
    return false;
  }

  /** The chunks of the audiences' lists. */
  get lists(): Pick<Audiences, "chunks" | "missing"> {
    return this.#audiences;
  }

  /** The rule set as the service sent it; undefined before the first one. */
  get received(): Rules | undefined {
    if (this.#environmentId === undefined) return undefined;
    const flags = new Map<string, FlagRules>();
    for (const [key, { rules }] of [...this.#flags, ...this.#withheld]) flags.set(key, rules);
    const { rules: audiences } = this.#audiences;
    return {
      ...{ projectId: this.#projectId, environmentId: this.#environmentId, flags, audiences },
      unsupported: new Map(this.#unsupported),
    };
  }

  /** Records that the service confirmed these flags. */
  confirm(source: Source): void {
    this.#source = source;
  }

  /** Replaces all flags. Returns the keys whose settings changed, including added and removed flags. */
  replace(rules: Rules, etag: string | undefined, source: Source): string[] {
    const known = [...this.#flags.keys(), ...this.#withheld.keys(), ...this.#unsupported.keys()];
    const removed = known.filter((key) => !rules.flags.has(key) && !rules.unsupported.has(key));
    const removedAudiences = [...this.#audiences.rules.keys()].filter(
      (key) => !rules.audiences.has(key),
    );
    this.#projectId = rules.projectId;
    this.#environmentId = rules.environmentId;
    return this.apply({ ...rules, removed, removedAudiences }, etag, source);
  }

  /**
   * Applies a change. Returns the keys of flags that changed: their settings, or something that they refer to. Includes
   * added and removed flags, but no flag that keeps its previous state for now.
   */
  apply(change: RulesChange, etag: string | undefined, source: Source): string[] {
    const { flags, removed, unsupported, audiences, removedAudiences } = change;
    const changed: string[] = [];
    this.#revision += 1;
    const changedAudiences = this.#audiences.apply(audiences, removedAudiences, this.#revision);
    const changedFlags: string[] = [];
    for (const [key, rules] of flags)
      if (this.#receive(key, rules, changed)) changedFlags.push(key);
    for (const key of [...removed, ...unsupported.keys()]) {
      if (flags.has(key)) continue;
      this.#remove(key, changed);
      changedFlags.push(key);
    }
    for (const [key, flag] of unsupported) this.#unsupported.set(key, flag);
    this.#link({ audiences: changedAudiences, flags: changedFlags }, changed);
    this.#etag = etag;
    this.#source = source;
    return changed;
  }

  /** Adds chunks of lists. Returns the keys of the flags that changed, because nothing else was missing. */
  addChunks(chunks: ReadonlyMap<string, Uint8Array>): string[] {
    const changed: string[] = [];
    this.#revision += 1;
    this.#link({ audiences: this.#audiences.addChunks(chunks), flags: [] }, changed);
    return changed;
  }

  /** Continues with the newest versions of lists if an earlier one needs this chunk, which cannot be loaded. */
  skipChunk(sha256: string): void {
    this.#audiences.skip(sha256);
  }

  /** Removes the previous states of withheld flags, so that they count as not found. Returns the keys of those that had one. */
  giveUp(keys: Iterable<string>): string[] {
    const changed: string[] = [];
    for (const key of keys) {
      const withheld = this.#withheld.get(key);
      if (withheld === undefined) continue;
      this.#withheld.set(key, { ...withheld, isSettled: true });
      this.#show(key, undefined, changed);
    }
    return changed;
  }

  /** Returns the evaluations of each flag since the last call, and sets them to zero. */
  takeCounts(): Map<string, Counts> {
    const counts = this.#earlierCounts;
    this.#earlierCounts = new Map();
    for (const [key, flag] of this.#flags) addTo(counts, key, flag.takeCounts());
    return counts;
  }

  /** Returns whether the rules differ from those that were received before. */
  #receive(key: string, rules: FlagRules, changed: string[]): boolean {
    this.#unsupported.delete(key);
    const known = this.#rulesOf(key);
    if (known !== undefined && haveSameSettings(known, rules)) {
      if (!this.#withheld.has(key)) this.#flags.get(key)?.renew(rules);
      return false;
    }
    const references = rules.enabled ? referredKeys(rules) : undefined;
    if (references === undefined || references.audiences.length + references.flags.length === 0) {
      this.#references.remove(key);
      this.#withheld.delete(key);
      this.#show(key, new Flag(rules), changed);
    } else {
      this.#references.put({ id: key, key, ...references });
      // Withheld with its new rules until it is linked.
      this.#setWithheld(key, rules, circle);
    }
    return true;
  }

  #remove(key: string, changed: string[]): void {
    this.#unsupported.delete(key);
    this.#references.remove(key);
    this.#withheld.delete(key);
    this.#show(key, undefined, changed);
  }

  /**
   * Decides for each flag that refers to something changed whether it can be evaluated. A flag stays if all its parts are
   * the same.
   */
  #link(keys: ReferredKeys, changed: string[]): void {
    const { ordered, circular } = this.#references.reachedBy({ ...keys, referrers: keys.flags });
    for (const key of circular) this.#withhold(key, circle, changed);
    for (const key of ordered) this.#linkOne(key, changed);
  }

  #linkOne(key: string, changed: string[]): void {
    const rules = this.#rulesOf(key);
    const references = this.#references.of(key);
    if (rules === undefined || references === undefined) return;
    const newest = this.#findLinks(references);
    if (!("problem" in newest)) {
      this.#withheld.delete(key);
      this.#showLinked(key, rules, newest, changed);
      return;
    }
    const known = this.#withheld.get(key);
    const found =
      newest.isWaiting && known?.isWaiting === true
        ? this.#findLinks(references, known.asOf)
        : newest;
    if ("problem" in found) {
      this.#withhold(key, newest, changed);
      return;
    }
    this.#showLinked(key, rules, found, changed);
    const { revision } = this;
    this.#withheld.set(key, {
      ...{ rules, ...newest },
      ...{ staleSince: revision, asOf: revision, isSettled: true },
    });
  }

  /** Finds what a flag refers to: the newest versions, or those that were the newest at the revision `asOf` or later. */
  #findLinks(references: ReferredKeys, asOf = Number.POSITIVE_INFINITY): Links | Missing {
    return findLinks(references, {
      audienceOf: (key) => this.#audiences.get(key, asOf),
      flagOf: (key) => {
        const withheld = this.#withheld.get(key);
        const flag = this.#flags.get(key);
        const isUsable = withheld?.isWaiting === true && withheld.staleSince > asOf;
        return isUsable ? (flag ?? withheld) : (withheld ?? flag);
      },
    });
  }

  #showLinked(key: string, rules: FlagRules, links: Links, changed: string[]): void {
    const flag = this.#flags.get(key);
    if (flag?.links.equals(links) === true && haveSameSettings(flag.rules, rules)) return;
    this.#show(key, new Flag(rules, links), changed);
  }

  #withhold(key: string, missing: Missing, changed: string[]): void {
    const rules = this.#rulesOf(key);
    if (rules === undefined) return;
    this.#setWithheld(key, rules, missing);
    if (!missing.isWaiting) this.#show(key, undefined, changed);
  }

  #setWithheld(key: string, rules: FlagRules, missing: Missing): void {
    const { revision } = this;
    const known = this.#withheld.get(key);
    const { asOf, isSettled } =
      known?.isWaiting === true ? known : { asOf: revision, isSettled: false };
    const { staleSince = revision } = known ?? {};
    this.#withheld.set(key, { rules, ...missing, staleSince, asOf, isSettled });
  }

  /** Returns the rules that the service sent last. */
  #rulesOf(key: string): FlagRules | undefined {
    return (this.#withheld.get(key) ?? this.#flags.get(key))?.rules;
  }

  #show(key: string, flag: Flag | undefined, changed: string[]): void {
    const previous = this.#flags.get(key);
    if (flag === previous) return;
    addTo(this.#earlierCounts, key, previous?.takeCounts());
    if (flag === undefined) this.#flags.delete(key);
    else this.#flags.set(key, flag);
    changed.push(key);
  }
}

const circle: Missing = { problem: "its requirements form a circle", isWaiting: false };

function addTo(counts: Map<string, Counts>, key: string, added: Counts | undefined): void {
  if (added !== undefined) counts.set(key, addCounts(added, counts.get(key)));
}
