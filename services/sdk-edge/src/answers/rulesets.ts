import type { DirectoryKey } from "@halyard/api-keys";
import type { State, StoredVariations } from "@halyard/contracts";
import type { ChangedRules } from "./changed-rules.ts";
import type { ConfigurationTag } from "./configuration-tags.ts";
import type { EnvironmentView } from "./environment-view.ts";
import type { EnvironmentViews } from "./environment-views.ts";
import { createFairScheduler, type Steps } from "./fair-scheduler.ts";
import { compressPart, gzipHeader, gzipTrailer, storedPart } from "./gzip-parts.ts";
import type { LinkedAudience } from "./linked-audiences.ts";
import type { Links } from "./linked-flags.ts";
import type { PreparedFlag } from "./prepared-flag.ts";
import type { Segment } from "./segments.ts";
import { createTurns } from "./turns.ts";

/**
 * The serialized rule sets of environments. The first request after a change prepares the rule set, and all further
 * ones share its bytes. Only the segments that changed are serialized, in time slices, and compressed, in another
 * thread. Organizations take turns with both, so a large rule set does not delay the others. An environment whose rule
 * set is never requested costs nothing, and its bytes are dropped when they have not been used for a while.
 */
export type Rulesets = {
  /** Resolves with the rule set of the current view of the key's environment. */
  of(key: Tenant): Promise<Ruleset>;
  stop(): void;
};

/** Time after which unused bytes are dropped: the interval at which SDKs without a stream poll, with its jitter. */
export const unusedLifetimeMs = 90_000;

type Tenant = Pick<DirectoryKey, "organizationId" | "projectId" | "environmentId">;

/** The bytes of one environment. */
type Prepared = {
  readonly bytesOf: PreparedBytes;
  view: EnvironmentView;
  ruleset: Promise<Ruleset>;
  readonly unused: NodeJS.Timeout;
};

type Job = { steps: Steps };

export function createRulesets(options: {
  views: EnvironmentViews;
  tagOf: (environmentId: string) => ConfigurationTag;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): Rulesets {
  const { views, tagOf, monotonicMs } = options;
  const prepared = new Map<string, Prepared>();
  const scheduler = createFairScheduler<Job>({ work: ({ steps }) => steps, monotonicMs });
  const turns = createTurns();

  async function prepare(
    { organizationId, projectId, environmentId }: Tenant,
    { bytesOf, view }: Pick<Prepared, "bytesOf" | "view">,
  ): Promise<Ruleset> {
    const etag = etagOf(tagOf(environmentId));
    const inSlices: InSlices = (work) =>
      new Promise((resolve, reject) => {
        const steps = settled(work, reject, resolve);
        scheduler.add(organizationId, environmentId, [{ steps }]);
      });
    const { flags, audiences } = await inSlices(serialize(view, bytesOf));
    const compress = async (parts: readonly MemberBytes[]) => {
      const pieces: Buffer[] = [];
      for (const part of parts)
        pieces.push(await part.compressed((work) => turns.take(organizationId, work)));
      return pieces;
    };
    const ids = { projectId, environmentId };
    return new Ruleset({ ...ids, etag, view, flags, audiences, compress, inSlices });
  }

  return {
    of(key) {
      const { environmentId } = key;
      const view = views.of(environmentId);
      const known = prepared.get(environmentId);
      if (known !== undefined) {
        known.unused.refresh();
        if (known.view !== view) {
          known.view = view;
          known.ruleset = prepare(key, known);
        }
        return known.ruleset;
      }
      const bytesOf: PreparedBytes = new WeakMap();
      const ruleset = prepare(key, { bytesOf, view });
      const drop = () => void prepared.delete(environmentId);
      const unused = setTimeout(drop, unusedLifetimeMs).unref();
      prepared.set(environmentId, { bytesOf, view, ruleset, unused });
      return ruleset;
    },
    stop() {
      scheduler.stop();
      for (const { unused } of prepared.values()) clearTimeout(unused);
    },
  };
}

/** Does work in time slices. Resolves with its result. */
type InSlices = <T>(work: Generator<undefined, T>) => Promise<T>;

/** The bytes of segments of flags, and of the audiences of a view. */
type PreparedBytes = WeakMap<Segment | Links, MemberBytes>;

/** Members of `flags` of one segment, or the members of `audiences`, without the braces. */
class MemberBytes {
  readonly bytes: Buffer;
  #compressed: Promise<Buffer> | undefined;

  constructor(bytes: Buffer) {
    this.bytes = bytes;
  }

  /** Resolves with the compressed bytes. The first call compresses them, when `inTurn` starts the work. */
  compressed(inTurn: (work: () => Promise<Buffer>) => Promise<Buffer>): Promise<Buffer> {
    if (this.#compressed === undefined) {
      this.#compressed = inTurn(() => compressPart(this.bytes));
      // The next request tries again.
      this.#compressed.catch(() => {
        this.#compressed = undefined;
      });
    }
    return this.#compressed;
  }
}

/** Serializes what has no bytes yet. Returns the bytes of the segments with flags, and of the audiences. */
function* serialize(
  { segments, links }: EnvironmentView,
  bytesOf: PreparedBytes,
): Generator<undefined, Pick<RulesetParts, "flags" | "audiences">> {
  const flags: MemberBytes[] = [];
  for (const segment of segments) {
    const part = yield* bytesFor(bytesOf, segment, { items: segment.flags, memberOf: flagMember });
    if (part.bytes.length > 0) flags.push(part);
  }
  if (links.audiences.size === 0) return { flags, audiences: [] };
  const audiences = { items: links.audiences.values(), memberOf: audienceMember };
  return { flags, audiences: [yield* bytesFor(bytesOf, links, audiences)] };
}

function* bytesFor<T>(
  bytesOf: PreparedBytes,
  source: Segment | Links,
  { items, memberOf }: { items: Iterable<T>; memberOf: (item: T) => string },
): Generator<undefined, MemberBytes> {
  const known = bytesOf.get(source);
  if (known !== undefined) return known;
  const texts: string[] = [];
  for (const item of items) {
    texts.push(memberOf(item));
    yield;
  }
  const part = new MemberBytes(Buffer.from(texts.join(",")));
  bytesOf.set(source, part);
  yield;
  return part;
}

/** Passes the result or the error on, so that an error reaches the requests that wait for the result. */
function* settled<T>(
  work: Generator<undefined, T>,
  failed: (error: unknown) => void,
  finished: (result: T) => void,
): Steps {
  try {
    finished(yield* work);
  } catch (error) {
    failed(error);
  }
}

/** Bytes in parts that several responses share. */
type SharedBytes = { readonly parts: readonly Buffer[]; readonly length: number };

/** The rule set of one view. */
class Ruleset {
  readonly view: EnvironmentView;
  readonly etag: string;
  readonly body: SharedBytes;
  readonly #given: RulesetParts;
  #gzip: Promise<SharedBytes> | undefined;

  constructor(given: RulesetParts & { etag: string; view: EnvironmentView }) {
    this.view = given.view;
    this.etag = given.etag;
    this.#given = given;
    this.body = shared(this.#framed(bodyFrame(given)));
  }

  /** The event with all flags. */
  get fullEvent(): readonly Buffer[] {
    return this.#framed(fullEventFrame(this.#given, this.etag));
  }

  /** Resolves with the compressed body. The first request compresses what earlier rule sets did not contain. */
  gzip(): Promise<SharedBytes> {
    if (this.#gzip === undefined) {
      this.#gzip = this.#compress();
      // The next request tries again.
      this.#gzip.catch(() => {
        this.#gzip = undefined;
      });
    }
    return this.#gzip;
  }

  async #compress(): Promise<SharedBytes> {
    const { flags, audiences, compress, inSlices } = this.#given;
    const { begin, between, end } = bodyFrame(this.#given);
    const pieces = [
      ...[gzipHeader, storedPart(begin)],
      ...joined(await compress(flags), storedComma),
      ...(between === undefined ? [] : [storedPart(between), ...(await compress(audiences))]),
    ];
    const trailer = await inSlices(gzipTrailer(this.body.parts));
    return shared([...pieces, storedPart(end, { isLast: true }), trailer]);
  }

  #framed({ begin, between, end }: Frame): Buffer[] {
    const { flags, audiences } = this.#given;
    const bytesIn = (parts: readonly MemberBytes[]) => parts.map(({ bytes }) => bytes);
    const members = joined(bytesIn(flags), comma);
    if (between === undefined) return [begin, ...members, end];
    return [begin, ...members, between, ...bytesIn(audiences), end];
  }
}

/** The bytes of a rule set, and the work that compresses them. */
type RulesetParts = Pick<Tenant, "projectId" | "environmentId"> & {
  flags: readonly MemberBytes[];
  /** Empty if no flag uses an audience. */
  audiences: readonly MemberBytes[];
  /** Resolves with the compressed bytes of each part. */
  compress: (parts: readonly MemberBytes[]) => Promise<readonly Buffer[]>;
  inSlices: InSlices;
};

const comma = Buffer.from(",");
const storedComma = storedPart(comma);

function joined(members: readonly Buffer[], separator: Buffer): Buffer[] {
  return members.flatMap((bytes, index) => (index === 0 ? [bytes] : [separator, bytes]));
}

function shared(parts: readonly Buffer[]): SharedBytes {
  return { parts, length: parts.reduce((sum, { length }) => sum + length, 0) };
}

/** The format of rule sets. Later releases add words to `needs` instead of formats. */
export const format = 2;

/** Returns the ETag of a rule set, which is also the id of its events. It begins with the format. */
export function etagOf({ text }: ConfigurationTag): string {
  return `"${format}.${text}"`;
}

/** Returns a flag as a member of `flags`. A literal takes half the time of a loop over the members. */
function flagMember({ entry, needs }: PreparedFlag): string {
  const { key, enabled, rollout_percentage, targeting_rules, bucket_by, bucket_seed, version } =
    entry;
  const { value_type, variations, serve, off_variation, requires } = entry;
  const rules = {
    enabled,
    rollout_percentage,
    targeting_rules,
    bucket_by,
    bucket_seed,
    serve,
    off_variation,
    requires,
    needs: needs.length === 0 ? undefined : needs,
    version,
  } satisfies { [Member in keyof Required<State> | "version" | "needs"]: unknown };
  const members = JSON.stringify(rules);
  const typed = variations === undefined ? "" : typedMembers(value_type, variations);
  return `${JSON.stringify(key)}:{${typed}${members.slice(1)}`;
}

/** Returns the members that only typed flags have. The values keep their texts. */
function typedMembers(valueType: unknown, variations: StoredVariations): string {
  const values = variations.map(
    (variation) => `{"key":${JSON.stringify(variation.key)},"value":${variation.json}}`,
  );
  return `"value_type":${JSON.stringify(valueType)},"variations":[${values.join(",")}],`;
}

/** Returns an audience as a member of `audiences`. */
function audienceMember({ entry: { key, match, list } }: LinkedAudience): string {
  return `${JSON.stringify(key)}:${JSON.stringify({ match, list })}`;
}

/** The texts before, between and after the members of `flags` and `audiences`. */
type Frame = { begin: Buffer; between: Buffer | undefined; end: Buffer };

/** Without audiences, the member `audiences` is absent. */
const betweenMembers = Buffer.from('},"audiences":{');

function bodyFrame({ projectId, environmentId, audiences }: RulesetParts): Frame {
  return {
    begin: Buffer.from(`{${headOf(projectId, environmentId)},"flags":{`),
    between: audiences.length === 0 ? undefined : betweenMembers,
    end: Buffer.from("}}"),
  };
}

/** Returns the first members of a complete rule set. A delta does not repeat the project. */
function headOf(projectId: string, environmentId: string): string {
  return `"format":${format},"project_id":"${projectId}","environment_id":"${environmentId}"`;
}

/** Returns the frame of an event with all flags. JSON has no line breaks, so the data is one line. */
function fullEventFrame(
  { projectId, environmentId, audiences }: RulesetParts,
  etag: string,
): Frame {
  const begin = `{${headOf(projectId, environmentId)},"full":true,"flags":{`;
  return {
    begin: Buffer.from(`event: ruleset\nid: ${etag}\ndata: ${begin}`),
    between: audiences.length === 0 ? undefined : betweenMembers,
    end: Buffer.from("}}\n\n"),
  };
}

/**
 * Returns the delta event for a client that may have other rules of these flags and audiences, and has everything else
 * of the view. Keys without a flag or an audience are listed as removed.
 */
export function deltaEvent({
  environmentId,
  view,
  tag,
  changed,
}: {
  environmentId: string;
  view: EnvironmentView;
  /** The tag of the view. */
  tag: ConfigurationTag;
  changed: { [Kind in keyof ChangedRules]: Iterable<string> };
}): Buffer {
  const flags = membersOf(changed.flags, (key) => view.find(key), flagMember);
  const audiences = membersOf(
    changed.audiences,
    (key) => view.links.audiences.get(key),
    audienceMember,
  );
  const members = [
    ...[`"format":${format}`, `"environment_id":"${environmentId}"`],
    `"flags":{${flags.present.join(",")}}`,
    ...ifAny(flags.removed, (keys) => `"removed":${JSON.stringify(keys)}`),
    ...ifAny(audiences.present, (present) => `"audiences":{${present.join(",")}}`),
    ...ifAny(audiences.removed, (keys) => `"removed_audiences":${JSON.stringify(keys)}`),
  ];
  return Buffer.from(`event: ruleset\nid: ${etagOf(tag)}\ndata: {${members.join(",")}}\n\n`);
}

/** Returns the members of what is found by its key, and the other keys. */
function membersOf<T>(
  keys: Iterable<string>,
  find: (key: string) => T | undefined,
  memberOf: (found: T) => string,
): { present: string[]; removed: string[] } {
  const present: string[] = [];
  const removed: string[] = [];
  for (const key of keys) {
    const found = find(key);
    if (found === undefined) removed.push(key);
    else present.push(memberOf(found));
  }
  return { present, removed };
}

function ifAny<T>(items: readonly T[], write: (items: readonly T[]) => string): string[] {
  return items.length === 0 ? [] : [write(items)];
}
