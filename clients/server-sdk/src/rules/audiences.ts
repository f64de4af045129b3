import { isDeepStrictEqual } from "node:util";
import { type CompiledAudience, compileAudience } from "@halyard/evaluation";
import { type AudienceRules, chunkNames } from "./parse-audiences.ts";

/** An audience in memory. It never changes, so that flags can keep an earlier one. It is compiled at its first use. */
export class Audience {
  readonly rules: AudienceRules;
  /** The chunks of the list; undefined while some are missing. */
  readonly chunks: readonly Uint8Array[] | undefined;
  #compiled: CompiledAudience | undefined = undefined;

  constructor(rules: AudienceRules, chunks: readonly Uint8Array[] | undefined) {
    this.rules = rules;
    this.chunks = chunks;
  }

  get compiled(): CompiledAudience {
    this.#compiled ??= compileAudience(this.rules.audience, this.chunks);
    return this.#compiled;
  }
}

/** An earlier version of an audience. */
type Earlier<T> = {
  readonly version: T;
  /** The revision of the rule set that brought a later version. */
  readonly supersededAt: number;
};

type Versions = {
  readonly newest: Audience;
  /** The last complete version, while the newest one is incomplete. */
  readonly complete?: Earlier<Audience> | undefined;
  /** The version whose chunks are loaded, if it is not the newest one. */
  readonly loading?: Earlier<AudienceRules> | undefined;
};

/**
 * The audiences that flags use, and the chunks of their lists. If a list changes while its chunks are loaded, this version
 * is completed first, and then the newest one is loaded. Otherwise a list that changes all the time would never be
 * complete.
 */
export class Audiences {
  readonly #audiences = new Map<string, Versions>();
  readonly #chunks = new Map<string, Uint8Array>();

  /**
   * Returns an audience. While the newest version is incomplete, returns the last complete one if it was the newest one
   * at the revision `asOf` or later.
   */
  get(key: string, asOf = Number.POSITIVE_INFINITY): Audience | undefined {
    const known = this.#audiences.get(key);
    const { complete } = known ?? {};
    return complete !== undefined && complete.supersededAt > asOf
      ? complete.version
      : known?.newest;
  }

  /** The audiences as they were received, by key. */
  get rules(): ReadonlyMap<string, AudienceRules> {
    return new Map([...this.#audiences].map(([key, { newest }]) => [key, newest.rules]));
  }

  /** The known chunks of the current lists, by their SHA-256. */
  get chunks(): ReadonlyMap<string, Uint8Array> {
    return this.#chunks;
  }

  /** The SHA-256 of each chunk that is unknown and to be loaded now. */
  get missing(): string[] {
    const loaded = [...this.#audiences.values()].map(
      ({ newest, loading }) => loading?.version ?? newest.rules,
    );
    return [...chunkNames(loaded)].filter((sha256) => !this.#chunks.has(sha256));
  }

  /** Applies a change, and drops the chunks that no list names any more. Returns the keys of changed audiences. */
  apply(
    received: ReadonlyMap<string, AudienceRules>,
    removed: readonly string[],
    revision: number,
  ): string[] {
    const changed = removed.filter((key) => this.#audiences.delete(key));
    for (const [key, rules] of received) {
      const known = this.#audiences.get(key);
      if (isDeepStrictEqual(known?.newest.rules, rules)) continue;
      const newest = new Audience(rules, this.#chunksOf(rules));
      this.#audiences.set(
        key,
        isIncomplete(newest) ? succeed(known, newest, revision) : { newest },
      );
      changed.push(key);
    }
    const named = this.#named;
    for (const sha256 of this.#chunks.keys()) if (!named.has(sha256)) this.#chunks.delete(sha256);
    return changed;
  }

  /**
   * Adds chunks. Those that no list names are ignored. Returns the keys of the audiences of which a version is now
   * complete.
   */
  addChunks(chunks: ReadonlyMap<string, Uint8Array>): string[] {
    const named = this.#named;
    for (const [sha256, bytes] of chunks) if (named.has(sha256)) this.#chunks.set(sha256, bytes);
    const completed: string[] = [];
    for (const [key, versions] of this.#audiences) {
      const next = isIncomplete(versions.newest) ? this.#complete(versions) : undefined;
      if (next === undefined) continue;
      this.#audiences.set(key, next);
      completed.push(key);
    }
    return completed;
  }

  /** Continues with the newest version of an audience if an earlier one needs a chunk that cannot be loaded. */
  skip(sha256: string): void {
    for (const [key, { loading, ...others }] of this.#audiences)
      if (loading !== undefined && chunkNames([loading.version]).has(sha256))
        this.#audiences.set(key, others);
  }

  /** The SHA-256 of each chunk of the lists that are complete or loaded. */
  get #named(): Set<string> {
    const versions = [...this.#audiences.values()];
    const loading = versions.flatMap((each) => each.loading?.version ?? []);
    return chunkNames([...loading, ...versions.map(({ newest }) => newest.rules)]);
  }

  /** Returns the versions after chunks arrived; undefined if none is complete now. */
  #complete({ newest, loading }: Versions): Versions | undefined {
    const chunks = this.#chunksOf(newest.rules);
    if (chunks !== undefined) return { newest: new Audience(newest.rules, chunks) };
    if (loading === undefined) return undefined;
    const { version: rules, supersededAt } = loading;
    const earlier = this.#chunksOf(rules);
    if (earlier === undefined) return undefined;
    return { newest, complete: { version: new Audience(rules, earlier), supersededAt } };
  }

  /** Returns the chunks of a list in their order; undefined if one is missing. */
  #chunksOf(rules: AudienceRules): readonly Uint8Array[] | undefined {
    if (rules.unknown !== undefined) return undefined;
    const chunks: Uint8Array[] = [];
    for (const sha256 of rules.audience.list?.chunks ?? []) {
      const chunk = this.#chunks.get(sha256);
      if (chunk === undefined) return undefined;
      chunks.push(chunk);
    }
    return chunks;
  }
}

function isIncomplete({ rules, chunks }: Audience): boolean {
  return rules.unknown === undefined && chunks === undefined;
}

/** Returns the versions of an audience with a newest one that is incomplete. */
function succeed(known: Versions | undefined, newest: Audience, supersededAt: number): Versions {
  if (known === undefined || known.newest.rules.unknown !== undefined) return { newest };
  const { newest: version } = known;
  if (!isIncomplete(version)) return { newest, complete: { version, supersededAt } };
  return { ...known, newest, loading: known.loading ?? { version: version.rules, supersededAt } };
}
