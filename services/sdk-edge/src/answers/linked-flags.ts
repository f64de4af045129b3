import type { FlagEntry } from "@halyard/contracts";
import {
  type ChangedReferences,
  isAttributeCondition,
  ReferenceGraph,
  type ReferredKeys,
  referredKeys,
} from "@halyard/evaluation";
import { type LinkState, nextLinkState, type Resolved } from "./link-state.ts";
import type { LinkedAudience, LinkedAudiences } from "./linked-audiences.ts";
import { LinkedFlag, type LinkedReferences, PreparedFlag } from "./prepared-flag.ts";
import type { FlagsDraft } from "./segments.ts";

/** The audiences that the flags of a view use. */
export class Links {
  /** Contains two versions of an audience while a flag keeps its previous state. */
  readonly #used: readonly LinkedAudience[];
  /** The newest version of each used audience, by key. */
  readonly audiences: ReadonlyMap<string, LinkedAudience>;
  /** Texts that identify the audiences, and the flags with missing references. Part of the configuration tag. */
  readonly texts: ReadonlySet<string>;
  /** Time of the newest change of an audience. 0 without any. */
  readonly newestMs: number;
  /** Cost of evaluating all audiences once, in conditions. */
  readonly weight: number;
  #chunks: ReadonlyMap<string, Buffer> | undefined;

  constructor(used: readonly LinkedAudience[], incomplete: readonly string[]) {
    this.#used = used.toSorted(byAge);
    this.audiences = new Map(this.#used.map((audience) => [audience.entry.key, audience]));
    this.texts = new Set([...used.map(textOf), ...incomplete]);
    this.newestMs = Math.max(0, ...used.map(({ entry }) => Date.parse(entry.committed_at)));
    this.weight = used.reduce((sum, { weight }) => sum + weight, 0);
  }

  /** Returns the chunk with this SHA-256 of the list of a used audience. */
  chunk(sha256: string): Buffer | undefined {
    this.#chunks ??= new Map(
      this.#used.flatMap(({ entry, chunks }) =>
        chunks.map((bytes, index) => [entry.list?.chunks[index] ?? "", bytes] as const),
      ),
    );
    return this.#chunks.get(sha256);
  }
}

/** Orders audiences by their ids, which increase with time, and then by their versions. */
function byAge({ entry: one }: LinkedAudience, { entry: other }: LinkedAudience): number {
  if (one.audience_id === other.audience_id) return one.version - other.version;
  return one.audience_id < other.audience_id ? -1 : 1;
}

export const noLinks = new Links([], []);

function textOf({ entry: { audience_id, version, committed_at } }: LinkedAudience): string {
  return `audience ${audience_id} ${version} ${committed_at}`;
}

/** Returns whether a flag refers to an audience or to another flag. */
export function refers({ targeting_rules: rules, requires }: FlagEntry): boolean {
  return requires !== undefined || rules.some(hasReference);
}

function hasReference({ conditions }: FlagEntry["targeting_rules"][number]): boolean {
  return !conditions.every(isAttributeCondition);
}

/** The entries of a flag before and after a change. Undefined where the flag does not exist. */
export type FlagChange = { before: FlagEntry | undefined; after: FlagEntry | undefined };

/** A flag with references: its newest entry, and its state in the view. */
type Referring = {
  readonly entry: FlagEntry;
  readonly keys: ReferredKeys;
  /** The previous entry, whose form it keeps while something is missing. */
  kept: FlagEntry | undefined;
  state: LinkState<PreparedFlag>;
};

/**
 * The flags of one environment that refer to audiences or to other flags. It changes with the view of the environment,
 * whose segments contain the prepared flags. An environment without such flags has no object of this class.
 */
export class LinkedFlags {
  readonly #findAudience: LinkedAudiences["find"];
  readonly #flags = new Map<string, Referring>();
  readonly #graph = new ReferenceGraph();
  /** The ids of the flags with missing references. */
  readonly #incomplete = new Set<string>();
  readonly #uses = new Map<LinkedAudience, number>();
  #links: Links | undefined = noLinks;

  constructor(findAudience: LinkedAudiences["find"]) {
    this.#findAudience = findAudience;
  }

  get isEmpty(): boolean {
    return this.#flags.size === 0;
  }

  /** The same object until it changes. */
  get links(): Links {
    this.#links ??= new Links([...this.#uses.keys()], [...this.#incomplete].map(this.#textOf));
    return this.#links;
  }

  /** The first time at which a flag that keeps its previous state is not found any longer. */
  get waitsUntilMs(): number | undefined {
    let firstMs: number | undefined;
    for (const id of this.#incomplete) {
      const { form, waitsUntilMs } = (this.#flags.get(id) as Referring).state;
      if (form !== undefined && waitsUntilMs !== undefined)
        firstMs = Math.min(firstMs ?? waitsUntilMs, waitsUntilMs);
    }
    return firstMs;
  }

  /** Returns the state of a flag; undefined for a flag without references. */
  stateOf(flagId: string): LinkState<PreparedFlag> | undefined {
    return this.#flags.get(flagId)?.state;
  }

  /** Adds an entry of a flag with references. `state` is the state in the draft of a flag that was not added yet. */
  add(entry: FlagEntry, state: LinkState<PreparedFlag>): void {
    const keys = referredKeys(entry);
    const id = entry.flag_id;
    const known = this.#flags.get(id);
    if (known === undefined) this.#count(state.form, 1);
    const flag = { entry, keys, kept: known?.kept, state: known?.state ?? state };
    this.#flags.set(id, flag);
    this.#putReferrer(flag);
  }

  /** Applies changes of flags in their order, and of the audiences with these keys. */
  change(
    draft: FlagsDraft,
    given: { flags: readonly FlagChange[]; audiences: Iterable<string>; nowMs: number },
  ): void {
    const referrers = new Set<string>();
    const flags = new Set<string>();
    for (const { before, after } of given.flags) {
      if (before !== undefined) flags.add(before.key);
      if (after !== undefined) flags.add(after.key);
      if (after !== undefined && refers(after)) {
        this.add(after, { form: before && draft.get(before), waitsUntilMs: undefined });
        referrers.add(after.flag_id);
      } else replaceFlag(draft, { before: this.#remove(before) ?? before, after });
    }
    this.#relink(draft, { referrers, flags, audiences: given.audiences }, given.nowMs);
  }

  /** Prepares all flags, except those whose state is complete and unchanged. */
  changeAll(draft: FlagsDraft, nowMs: number): void {
    this.#relink(draft, { referrers: this.#flags.keys(), flags: [], audiences: [] }, nowMs);
  }

  /** Removes the flags that have kept their previous state for too long. */
  giveUp(draft: FlagsDraft, nowMs: number): void {
    this.#relink(draft, { referrers: this.#incomplete, flags: [], audiences: [] }, nowMs);
  }

  /** Removes a flag. Returns its entry in the draft. */
  #remove(entry: FlagEntry | undefined): FlagEntry | undefined {
    const removed = entry && this.#flags.get(entry.flag_id);
    if (removed === undefined) return undefined;
    this.#flags.delete(removed.entry.flag_id);
    this.#graph.remove(removed.entry.flag_id);
    this.#count(removed.state.form, -1);
    if (this.#incomplete.delete(removed.entry.flag_id)) this.#links = undefined;
    return removed.state.form?.entry;
  }

  #relink(draft: FlagsDraft, changed: ChangedReferences, nowMs: number): void {
    const { ordered, circular } = this.#graph.reachedBy(changed);
    const connected: string[] = [];
    for (const id of circular) {
      this.#place(draft, id, { form: undefined, waitsUntilMs: undefined });
      if (this.#connect(id)) connected.push(id);
    }
    for (const id of ordered) {
      const { entry, keys, state } = this.#flags.get(id) as Referring;
      const resolved = this.#resolve(draft, { entry, keys }, nowMs);
      const prepare = (references: LinkedReferences) => prepared(state.form, entry, references);
      const form = resolved.found === "some" ? this.#keep(draft, state.form, nowMs) : state.form;
      this.#place(draft, id, nextLinkState({ ...state, form }, resolved, { nowMs, prepare }));
      if (this.#connect(id)) connected.push(id);
    }
    if (connected.length > 0)
      this.#relink(draft, { referrers: connected, flags: [], audiences: [] }, nowMs);
  }

  /**
   * Returns the previous form of a flag that waits, with the current flags that it requires: a required flag that is
   * turned off takes effect at once. It keeps its audiences unless all of them are found.
   */
  #keep(
    draft: FlagsDraft,
    form: PreparedFlag | undefined,
    nowMs: number,
  ): PreparedFlag | undefined {
    if (!(form instanceof LinkedFlag)) return form;
    const { entry, linked } = form;
    const resolved = this.#resolve(draft, { entry, keys: referredKeys(entry) }, nowMs);
    if (resolved.found === "never") return undefined;
    if (resolved.found === "all") return prepared(form, entry, resolved.references);
    const flags = [...linked.flags].map(([key, flag]) => [key, draft.find(key) ?? flag] as const);
    return prepared(form, entry, { audiences: linked.audiences, flags: new Map(flags) });
  }

  #resolve(
    draft: FlagsDraft,
    { entry, keys }: Pick<Referring, "entry" | "keys">,
    nowMs: number,
  ): Resolved<LinkedReferences> {
    const audiences = new Map<string, LinkedAudience>();
    const flags = new Map<string, PreparedFlag>();
    for (const key of keys.audiences) {
      const audience = this.#findAudience(entry.project_id, key);
      if (audience !== undefined) audiences.set(key, audience);
    }
    if (!entry.enabled) return { found: "all", references: { audiences, flags } };
    let found: "all" | "some" = audiences.size === keys.audiences.length ? "all" : "some";
    for (const key of keys.flags) {
      const flag = draft.find(key);
      if (flag !== undefined && flag.depth < maxDepth) flags.set(key, flag);
      else if (flag === undefined && this.#isWaiting(key, nowMs)) found = "some";
      else return { found: "never" };
    }
    return found === "all" ? { found, references: { audiences, flags } } : { found };
  }

  #isWaiting(key: string, nowMs: number): boolean {
    for (const id of this.#graph.idsOf(key))
      if ((this.#flags.get(id)?.state.waitsUntilMs ?? 0) > nowMs) return true;
    return false;
  }

  /**
   * Connects a flag in the graph with what it refers to, also in the previous entry that it keeps. Returns whether that
   * changed, so that the flag must be linked again in its new order.
   */
  #connect(id: string): boolean {
    const flag = this.#flags.get(id) as Referring;
    const { form, waitsUntilMs } = flag.state;
    const isEarlier = waitsUntilMs !== undefined && form?.entry !== flag.entry;
    const kept = isEarlier ? form?.entry : undefined;
    if (kept === flag.kept) return false;
    flag.kept = kept;
    this.#putReferrer(flag);
    return true;
  }

  #putReferrer({ entry, keys, kept }: Referring): void {
    const earlier = kept && referredKeys(kept);
    const flags = [...(entry.enabled ? keys.flags : []), ...(earlier?.flags ?? [])];
    this.#graph.put({
      ...{ id: entry.flag_id, key: entry.key },
      audiences: [...new Set([...keys.audiences, ...(earlier?.audiences ?? [])])],
      flags: [...new Set(flags)],
    });
  }

  /** Sets the state of a flag, and puts its form into the draft. */
  #place(draft: FlagsDraft, id: string, state: LinkState<PreparedFlag>): void {
    const flag = this.#flags.get(id) as Referring;
    const { form } = flag.state;
    if (form !== state.form) {
      replaceForm(draft, form?.entry, state.form);
      this.#count(form, -1);
      this.#count(state.form, 1);
    }
    flag.state = state;
    const isIncomplete = state.form === undefined || state.waitsUntilMs !== undefined;
    if (isIncomplete || this.#incomplete.has(id)) this.#links = undefined;
    if (isIncomplete) this.#incomplete.add(id);
    else this.#incomplete.delete(id);
  }

  #count(form: PreparedFlag | undefined, change: 1 | -1): void {
    if (!(form instanceof LinkedFlag)) return;
    for (const audience of form.linked.audiences.values()) {
      const before = this.#uses.get(audience) ?? 0;
      if (before + change === 0) this.#uses.delete(audience);
      else this.#uses.set(audience, before + change);
      if (before === 0 || before + change === 0) this.#links = undefined;
    }
  }

  /** Identifies a flag with missing references, and the state that it keeps. */
  readonly #textOf = (id: string): string => {
    const { entry, state } = this.#flags.get(id) as Referring;
    return `flag ${id} ${entry.version} keeps ${state.form?.entry.version ?? "nothing"}`;
  };
}

/**
 * Maximum length of a chain of requirements. Management allows 10, but a damaged snapshot could contain a chain that
 * overflows the stack when it is evaluated.
 */
const maxDepth = 64;

/** Returns the previous form if it has the same entry and references. */
function prepared(
  form: PreparedFlag | undefined,
  entry: FlagEntry,
  references: LinkedReferences,
): PreparedFlag {
  if (form instanceof LinkedFlag && form.entry === entry && isSame(form.linked, references))
    return form;
  return new LinkedFlag(entry, references);
}

function isSame(one: LinkedReferences, other: LinkedReferences): boolean {
  return haveSame(one.audiences, other.audiences) && haveSame(one.flags, other.flags);
}

function haveSame<V>(one: ReadonlyMap<string, V>, other: ReadonlyMap<string, V>): boolean {
  if (one.size !== other.size) return false;
  for (const [key, value] of one) if (other.get(key) !== value) return false;
  return true;
}

/** Replaces a flag without references. */
export function replaceFlag(draft: FlagsDraft, { before, after }: FlagChange): void {
  replaceForm(draft, before, after && new PreparedFlag(after));
}

function replaceForm(
  draft: FlagsDraft,
  before: FlagEntry | undefined,
  after: PreparedFlag | undefined,
): void {
  if (before !== undefined && before.key !== after?.entry.key) draft.remove(before);
  if (after !== undefined) draft.put(after);
}
