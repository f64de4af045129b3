import type { DirectoryKey } from "@halyard/api-keys";
import type { FlagEntry, State, StoredVariations } from "@halyard/contracts";
import { needsOf } from "@halyard/evaluation";
import type { ConfigurationTag } from "./configuration-tags.ts";
import type { EnvironmentView, EnvironmentViews } from "./environment-view.ts";
import { createFairScheduler, type Steps } from "./fair-scheduler.ts";
import { compressPart, gzipHeader, gzipTrailer, storedPart } from "./gzip-parts.ts";
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
  of(key: Pick<DirectoryKey, "organizationId" | "environmentId">): Promise<Ruleset>;
  stop(): void;
};

/** Time after which unused bytes are dropped: the interval at which SDKs without a stream poll, with its jitter. */
export const unusedLifetimeMs = 90_000;

/** The bytes of one environment. */
type Prepared = {
  readonly bytesOf: WeakMap<Segment, SegmentBytes>;
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
    { organizationId, environmentId }: Pick<DirectoryKey, "organizationId" | "environmentId">,
    { bytesOf, view }: Pick<Prepared, "bytesOf" | "view">,
  ): Promise<Ruleset> {
    const etag = etagOf(tagOf(environmentId));
    const inSlices: InSlices = (work) =>
      new Promise((resolve, reject) => {
        const steps = settled(work, reject, resolve);
        scheduler.add(organizationId, environmentId, [{ steps }]);
      });
    const parts = await inSlices(serialize(view, bytesOf));
    const compressed = async () => {
      const pieces: Buffer[] = [];
      for (const part of parts)
        pieces.push(await part.compressed((work) => turns.take(organizationId, work)));
      return pieces;
    };
    return new Ruleset({ environmentId, etag, view, parts, compressed, inSlices });
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
      const bytesOf = new WeakMap<Segment, SegmentBytes>();
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

/** Members of `flags` of one segment, without the braces. */
class SegmentBytes {
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

/** Serializes the segments of a view that have no bytes yet. Returns the bytes of those with flags. */
function* serialize(
  { segments }: EnvironmentView,
  bytesOf: WeakMap<Segment, SegmentBytes>,
): Generator<undefined, SegmentBytes[]> {
  const parts: SegmentBytes[] = [];
  for (const segment of segments) {
    let part = bytesOf.get(segment);
    if (part === undefined) {
      const members: string[] = [];
      for (const { entry } of segment.flags) {
        members.push(flagMember(entry));
        yield;
      }
      part = new SegmentBytes(Buffer.from(members.join(",")));
      bytesOf.set(segment, part);
      yield;
    }
    if (part.bytes.length > 0) parts.push(part);
  }
  return parts;
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
    this.body = shared(this.#framed(bodyFrame(given.environmentId)));
  }

  /** The event with all flags. */
  get fullEvent(): readonly Buffer[] {
    return this.#framed(fullEventFrame(this.#given.environmentId, this.etag));
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
    const { environmentId, compressed, inSlices } = this.#given;
    const { begin, end } = bodyFrame(environmentId);
    const members = joined(await compressed(), storedComma);
    const trailer = await inSlices(gzipTrailer(this.body.parts));
    const last = storedPart(end, { isLast: true });
    return shared([gzipHeader, storedPart(begin), ...members, last, trailer]);
  }

  #framed({ begin, end }: Frame): Buffer[] {
    const members = this.#given.parts.map(({ bytes }) => bytes);
    return [begin, ...joined(members, comma), end];
  }
}

/** The bytes of a rule set, and the work that compresses them. */
type RulesetParts = {
  environmentId: string;
  parts: readonly SegmentBytes[];
  /** Resolves with the compressed bytes of each part. */
  compressed: () => Promise<readonly Buffer[]>;
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
function flagMember(flag: FlagEntry): string {
  const { key, enabled, rollout_percentage, targeting_rules, bucket_by, bucket_seed, version } =
    flag;
  const { value_type, variations, serve, off_variation } = flag;
  const needs = needsOf(flag);
  const rules = {
    enabled,
    rollout_percentage,
    targeting_rules,
    bucket_by,
    bucket_seed,
    serve,
    off_variation,
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

/** Returns the text before and after the members of `flags` in a response. */
function bodyFrame(environmentId: string): Frame {
  return frameOf({
    begin: `{"format":${format},"environment_id":"${environmentId}","flags":{`,
    end: "}}",
  });
}

/**
 * Returns the text before and after the members of `flags` in an event with all flags. JSON has no line breaks, so the
 * data is one line.
 */
function fullEventFrame(environmentId: string, etag: string): Frame {
  const begin = `{"format":${format},"environment_id":"${environmentId}","full":true,"flags":{`;
  return frameOf({ begin: `event: ruleset\nid: ${etag}\ndata: ${begin}`, end: "}}\n\n" });
}

type Frame = { begin: Buffer; end: Buffer };

function frameOf({ begin, end }: { [part in keyof Frame]: string }): Frame {
  return { begin: Buffer.from(begin), end: Buffer.from(end) };
}

/**
 * Returns the delta event for a client that may have other rules of the flags with these keys, and has all other rules
 * of the view. Keys without a flag are listed as removed.
 */
export function deltaEvent({
  environmentId,
  view,
  tag,
  keys,
}: {
  environmentId: string;
  view: EnvironmentView;
  /** The tag of the view. */
  tag: ConfigurationTag;
  keys: Iterable<string>;
}): Buffer {
  const members: string[] = [];
  const removed: string[] = [];
  for (const key of keys) {
    const flag = view.find(key);
    if (flag === undefined) removed.push(key);
    else members.push(flagMember(flag.entry));
  }
  const last = removed.length === 0 ? "" : `,"removed":${JSON.stringify(removed)}`;
  const data = `{"format":${format},"environment_id":"${environmentId}","flags":{${members.join(",")}}${last}}`;
  return Buffer.from(`event: ruleset\nid: ${etagOf(tag)}\ndata: ${data}\n\n`);
}
