import {
  type CompleteEntry,
  completeKey,
  everythingFilter,
  isSignedEntry,
  parseEntry,
  type SignedEntry,
  type SnapshotEntry,
  type SnapshotRevision,
  snapshotBucket,
} from "@halyard/contracts";
import {
  apiTimeoutMs,
  type FollowedStream,
  followStream,
  parseJson,
  type StreamIdentity,
  type StreamMessage,
  type StreamReader,
  streamPosition,
  traceOf,
} from "@halyard/jetstream";
import type { TraceContext } from "@halyard/tracing";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { type HeldSnapshot, resumePoint } from "./resume-point.ts";
import { findComplete } from "./snapshot-bucket.ts";

/**
 * One of several states that a service keeps from the snapshot. `followDirectory` of libs/api-keys joins parts to one
 * `SnapshotFollower`. Versions decide, because entries may be repeated or late.
 */
export type SnapshotPart = {
  /** Begins a replacement by a full read. The current state stays in use until `finish`. */
  beginReplacing(): { take(entry: SnapshotEntry): unknown; finish(): void };
  /** Receives an entry that arrived while following. */
  apply(entry: SnapshotEntry): unknown;
  /** Receives an entry that the state lacked after an interruption; `apply` by default. */
  resume?(entry: SnapshotEntry): unknown;
};

/** Receives everything that `followSnapshot` reads. */
export type SnapshotFollower = {
  /** Begins a full read. The current state stays in use until the read is finished. */
  beginRead(): SnapshotRead;
  /**
   * Receives one entry. Versions decide, because entries may be repeated or late. `trace` is the context of
   * the span that sent the entry; undefined without traces.
   */
  apply(entry: SnapshotEntry, trace?: TraceContext): void;
  /** Receives the entries that the state lacked after an interruption. By default each one is applied. */
  resume?(epoch: string, entries: readonly SnapshotEntry[]): void;
  /**
   * Verifies the signature of the entry `complete` at this sequence. Without a valid signature, the snapshot counts as
   * incomplete.
   */
  isGenuineComplete(complete: CompleteEntry, sequence: number): boolean;
  /**
   * Verifies the signature of the plans, or of the deletion of an environment, a project or an organization. Without a
   * valid signature, the entry is ignored.
   */
  isGenuine(key: string, entry: SignedEntry): boolean;
  /** Called for an entry that does not fit its schema. It is ignored, or kept as unknown (`parseEntry`). */
  rejected(key: string, problem: string): void;
  /** Called when the state is current, at the start and after every interruption. */
  current?(epoch: string): void;
  /**
   * Called when every entry up to this revision was delivered: when the state is current, and after each later message,
   * even if it has no entry for this follower.
   */
  reached?(revision: SnapshotRevision): void;
};

/** A read in progress, of all entries or of those that the state lacks. It may be abandoned. */
export type SnapshotRead = {
  take(entry: SnapshotEntry): void;
  /** Called after the last entry. */
  finish(epoch: string): void;
};

export type FollowedSnapshot = FollowedStream & {
  /** Resolves when the state is current for the first time. */
  ready: Promise<void>;
  /** Returns the last revision if the state is current and the snapshot is not being rebuilt. */
  settledRevision(): Promise<SnapshotRevision | undefined>;
};

/**
 * Follows the snapshot: all entries first, then each change. The reader keeps its state when an attempt ends. The next
 * attempt reads only what the state lacks if that is safe (`resumePoint`), and all entries otherwise.
 *
 * A read counts only if the bucket is complete and has the same epoch before and after it.
 */
export function followSnapshot(options: {
  connection: NatsConnection;
  filter: string;
  follower: SnapshotFollower;
  /** State of an earlier process that the follower can continue from. */
  held?: HeldSnapshot | undefined;
  logger: Logger;
}): FollowedSnapshot {
  const { connection, filter, follower, logger } = options;
  const ready = Promise.withResolvers<void>();
  const readGenuine = createGenuineReader(options);
  let { held } = options;

  const source = {
    stream: snapshotBucket.streamName,
    filter: filter === everythingFilter ? undefined : snapshotBucket.subjectPrefix + filter,
    identify: async (manager: JetStreamManager) => {
      const complete = await readGenuine(manager);
      return complete && { identity: complete.epoch, firstSequence: complete.from };
    },
    begin: (found: StreamIdentity & { lastSequence: number }) =>
      beginReading({
        ...{ found, held, follower },
        onCurrent(state) {
          held = state;
          ready.resolve();
        },
      }),
  };
  const followed = followStream({ connection, logger, source });
  async function settledRevision(): Promise<SnapshotRevision | undefined> {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    const reads = Promise.all([
      readGenuine(manager),
      streamPosition(manager, snapshotBucket.streamName),
    ]);
    const [complete, position] = await reads.catch(() => []);
    const hasEpoch = complete !== undefined && complete.epoch === held?.epoch;
    if (!hasEpoch || complete.rebuilding || position === undefined || !followed.isCurrent())
      return undefined;
    return { epoch: complete.epoch, revision: position.lastSequence };
  }

  return { ...followed, ready: ready.promise, settledRevision };
}

/** Begins a full read, or a read of the entries after the held state. `onCurrent` receives each current state. */
function beginReading(options: {
  found: StreamIdentity & { lastSequence: number };
  held: HeldSnapshot | undefined;
  follower: SnapshotFollower;
  onCurrent: (state: HeldSnapshot) => void;
}): StreamReader {
  const { found, held, follower, onCurrent } = options;
  const { identity: epoch, firstSequence = 1, lastSequence } = found;
  const nowMs = Date.now();
  const from = held && resumePoint(held, { epoch, lastSequence, nowMs });
  let revision = from === undefined ? 0 : (held?.revision ?? 0);
  /** Receives the entries until the read has caught up; undefined afterwards. */
  let read: SnapshotRead | undefined =
    from === undefined ? follower.beginRead() : beginResumedRead(follower);
  const confirmed = (currentAtMs: number) => onCurrent({ epoch, revision, currentAtMs });
  return {
    ...(from !== undefined && { from }),
    take(message) {
      revision = Math.max(revision, message.sequence);
      const entry = message.sequence < firstSequence ? undefined : decode(message, follower);
      if (entry !== undefined && read !== undefined) read.take(entry);
      else if (entry !== undefined) follower.apply(entry, traceOf(message.headers));
      if (read === undefined) follower.reached?.({ epoch, revision });
    },
    caughtUp() {
      read?.finish(epoch);
      read = undefined;
      confirmed(nowMs);
      follower.reached?.({ epoch, revision });
      follower.current?.(epoch);
    },
    confirmed,
  };
}

/** Returns a reader of the entry `complete`. Without a valid signature, the entry is logged and counts as missing. */
function createGenuineReader({ follower, logger }: { follower: SnapshotFollower; logger: Logger }) {
  let reportedSequence: number | undefined;
  return async (manager: JetStreamManager): Promise<CompleteEntry | undefined> => {
    const found = await findComplete(manager);
    if (found === undefined) return undefined;
    const { complete, sequence } = found;
    if (follower.isGenuineComplete(complete, sequence)) return complete;
    if (reportedSequence !== sequence)
      logger.error(
        { signer: complete.signed_by, sequence },
        "the entry `complete` of the snapshot has no valid signature by a key pair of SIGNING_PUBLIC_KEYS; waiting for another",
      );
    reportedSequence = sequence;
    return undefined;
  };
}

/** Collects the entries of a read, for a follower that receives them as one list. */
export function collectRead(
  finish: (epoch: string, entries: readonly SnapshotEntry[]) => void,
): SnapshotRead {
  const entries: SnapshotEntry[] = [];
  return {
    take: (entry) => void entries.push(entry),
    finish: (epoch) => finish(epoch, entries),
  };
}

/** Begins a read of the entries that the follower's state lacks. */
function beginResumedRead(follower: SnapshotFollower): SnapshotRead {
  return collectRead((epoch, entries) => {
    if (follower.resume !== undefined) follower.resume(epoch, entries);
    else for (const entry of entries) follower.apply(entry);
  });
}

function decode(message: StreamMessage, follower: SnapshotFollower): SnapshotEntry | undefined {
  // A consumer that delivers into the bucket would store messages with subjects of another stream.
  if (!message.subject.startsWith(snapshotBucket.subjectPrefix)) return undefined;
  const key = message.subject.slice(snapshotBucket.subjectPrefix.length);
  if (key === completeKey) return undefined;
  const parsed = parseEntry(key, parseJson(message.payload));
  if (parsed === undefined) return undefined;
  if (parsed.problem !== undefined) follower.rejected(key, parsed.problem);
  if (!parsed.ok) return undefined;
  return isForged(key, parsed.value, follower) ? undefined : parsed.value;
}

/** Followers verify the entries of API keys themselves, most of them when the keys are first used. */
function isForged(key: string, entry: SnapshotEntry, follower: SnapshotFollower): boolean {
  if (!isSignedEntry(entry) || entry.address.kind === "key") return false;
  return !follower.isGenuine(key, entry.value);
}
