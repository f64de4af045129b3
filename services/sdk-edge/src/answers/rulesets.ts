import type { DirectoryKey } from "@halyard/api-keys";
import type { FlagEntry, State } from "@halyard/contracts";
import type { ConfigurationTag } from "./configuration-tags.ts";
import { type CompressedCoding, compress } from "./content-coding.ts";
import type { EnvironmentView, EnvironmentViews } from "./environment-view.ts";
import { createFairScheduler, type Steps } from "./fair-scheduler.ts";
import type { Segment } from "./segments.ts";

/**
 * The serialized rule sets of environments. The first request after a change prepares the rule set, and all further
 * ones share its bytes. Only the segments that changed are serialized, in time slices. An environment whose rule set
 * is never requested costs nothing, and its bytes are dropped when they have not been used for a while.
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
  /** `flags` of each segment, without its braces. */
  readonly bytesOf: WeakMap<Segment, Buffer>;
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

  function prepare(
    { organizationId, environmentId }: Pick<DirectoryKey, "organizationId" | "environmentId">,
    { bytesOf, view }: Pick<Prepared, "bytesOf" | "view">,
  ): Promise<Ruleset> {
    const etag = etagOf(tagOf(environmentId));
    return new Promise((resolve, reject) => {
      const serializing = serialize(view, bytesOf);
      const steps = settled(serializing, reject, (parts) =>
        resolve(new Ruleset({ environmentId, etag, view, parts })),
      );
      scheduler.add(organizationId, environmentId, [{ steps }]);
    });
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
      const bytesOf = new WeakMap<Segment, Buffer>();
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

/** Serializes the segments of a view that have no bytes yet. Returns the bytes of those with flags. */
function* serialize(
  { segments }: EnvironmentView,
  bytesOf: WeakMap<Segment, Buffer>,
): Generator<undefined, Buffer[]> {
  const parts: Buffer[] = [];
  for (const segment of segments) {
    let bytes = bytesOf.get(segment);
    if (bytes === undefined) {
      const members: string[] = [];
      for (const { entry } of segment.flags) {
        members.push(flagMember(entry));
        yield;
      }
      bytes = Buffer.from(members.join(","));
      bytesOf.set(segment, bytes);
    }
    if (bytes.length > 0) parts.push(bytes);
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
  readonly #environmentId: string;
  readonly #parts: readonly Buffer[];
  readonly #compressed = new Map<CompressedCoding, Promise<SharedBytes>>();

  constructor(given: {
    environmentId: string;
    etag: string;
    view: EnvironmentView;
    parts: readonly Buffer[];
  }) {
    this.view = given.view;
    this.etag = given.etag;
    this.#environmentId = given.environmentId;
    this.#parts = given.parts;
  }

  get body(): SharedBytes {
    return framed(this.#parts, bodyFrame(this.#environmentId));
  }

  /** The event with all flags. */
  get fullEvent(): readonly Buffer[] {
    return framed(this.#parts, fullEventFrame(this.#environmentId, this.etag)).parts;
  }

  /** Resolves with the compressed body. The first request compresses it, outside the event loop's thread. */
  compressed(coding: CompressedCoding): Promise<SharedBytes> {
    let bytes = this.#compressed.get(coding);
    if (bytes === undefined) {
      bytes = compress(coding, this.body.parts).then((whole) => ({
        parts: [whole],
        length: whole.length,
      }));
      this.#compressed.set(coding, bytes);
      // The next request tries again.
      bytes.catch(() => this.#compressed.delete(coding));
    }
    return bytes;
  }
}

const comma = Buffer.from(",");

function framed(members: readonly Buffer[], { begin, end }: Frame): SharedBytes {
  const parts: Buffer[] = [Buffer.from(begin)];
  members.forEach((bytes, index) => {
    if (index > 0) parts.push(comma);
    parts.push(bytes);
  });
  parts.push(Buffer.from(end));
  return { parts, length: parts.reduce((sum, { length }) => sum + length, 0) };
}

/** Returns the ETag of a rule set, which is also the id of its events. */
export function etagOf({ text }: ConfigurationTag): string {
  return `"${text}"`;
}

/** Returns a flag as a member of `flags`. A literal takes half the time of a loop over the members. */
function flagMember(flag: FlagEntry): string {
  const { key, enabled, rollout_percentage, targeting_rules, version } = flag;
  const rules = { enabled, rollout_percentage, targeting_rules, version } satisfies {
    [Member in keyof Required<State> | "version"]: unknown;
  };
  return `${JSON.stringify(key)}:${JSON.stringify(rules)}`;
}

/** Returns the text before and after the members of `flags` in a response. */
function bodyFrame(environmentId: string): Frame {
  return { begin: `{"environment_id":"${environmentId}","flags":{`, end: "}}" };
}

/**
 * Returns the text before and after the members of `flags` in an event with all flags. JSON has no line breaks, so the
 * data is one line.
 */
function fullEventFrame(environmentId: string, etag: string): Frame {
  const begin = `{"environment_id":"${environmentId}","full":true,"flags":{`;
  return { begin: `event: ruleset\nid: ${etag}\ndata: ${begin}`, end: "}}\n\n" };
}

type Frame = { begin: string; end: string };

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
  const data = `{"environment_id":"${environmentId}","flags":{${members.join(",")}}${last}}`;
  return Buffer.from(`event: ruleset\nid: ${etagOf(tag)}\ndata: ${data}\n\n`);
}
