import {
  type CompleteEntry,
  completeKey,
  everythingFilter,
  isSignedEntry,
  parseEntry,
  type SnapshotEntry,
  type SnapshotRevision,
  snapshotBatchEntries,
  snapshotBucket,
  type Tombstone,
} from "@halyard/contracts";
import { type JetStreamManager, jetstreamManager } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { apiTimeoutMs } from "./connect.ts";
import { findComplete } from "./find-complete.ts";
import { type FollowedStream, followStream, type StreamIdentity } from "./follow-stream.ts";
import { parseJson } from "./parse-json.ts";
import type { StreamMessage } from "./read-stream.ts";
import { streamPosition } from "./streams.ts";

/** State that a service reads from the snapshot. Versions decide: entries may repeat or come late. */
export type SnapshotPart = {
  /** Begins a replacement by a whole snapshot. The present state stays in use until `finish`. */
  beginReplacing(): { take(entry: SnapshotEntry): unknown; finish(): void };
  /** Takes an entry that arrived while following. */
  apply(entry: SnapshotEntry): unknown;
  /** Takes an entry that the state lacked after an interruption; by default like `apply`. */
  resume?(entry: SnapshotEntry): unknown;
  /** Receives the key of an entry that does not fit its schema. */
  rejected?(key: string): void;
};

export type SnapshotFollower = {
  /** Begins a full read. The state so far stays in use until the read is finished. */
  beginRead(): SnapshotRead;
  /** One entry as it is now. Entries may repeat or come late: versions decide. */
  apply(entry: SnapshotEntry): void;
  /** The entries that the state lacked after an interruption. By default each one is applied. */
  resume?(epoch: string, entries: readonly SnapshotEntry[]): void;
  /**
   * Verifies the signature of the entry `complete` at this sequence. Without a valid one, the snapshot counts as
   * incomplete.
   */
  isGenuineComplete(complete: CompleteEntry, sequence: number): boolean;
  /**
   * Verifies the signature of the deletion of an environment, a project or an organization. Without a valid one, the
   * deletion is left out.
   */
  isGenuineDeletion(key: string, deletion: Tombstone): boolean;
  /** An entry that does not fit its schema was left out. */
  rejected(key: string, problem: string): void;
  /** The state is current, at the start and after every interruption. */
  current?(epoch: string): void;
  /**
   * Every entry up to this revision was passed on. Called when the state is current, and after each later
   * message, also one without an entry for this follower.
   */
  reached?(revision: SnapshotRevision): void;
};

/** A read that is under way, of everything or of what the state lacks. It may be abandoned. */
export type SnapshotRead = {
  take(entry: SnapshotEntry): void;
  /** Every entry was taken. */
  finish(epoch: string): void;
};

export type FollowedSnapshot = FollowedStream & {
  /** Resolves when the state is current for the first time. */
  ready: Promise<void>;
  /**
   * Returns whether the state is current and the snapshot is not being rebuilt. Only then may a deletion or an
   * absence be taken for the database's.
   */
  isSettled(): Promise<boolean>;
  /** Returns the last sequence of the stream if `isSettled`. */
  settledRevision(): Promise<number | undefined>;
};

/**
 * Follows the snapshot: everything first, then each change. The reader keeps its state when an attempt ends,
 * and the next attempt reads only what the state lacks, if that is safe (`resumePoint`). Otherwise it reads
 * everything.
 *
 * A reading counts only if the bucket is complete and has the same epoch before and after it.
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

  function begin(found: StreamIdentity & { lastSequence: number }) {
    const { identity: epoch, firstSequence = 1, lastSequence } = found;
    const nowMs = Date.now();
    const from = held && resumePoint(held, { epoch, lastSequence, nowMs });
    let revision = from === undefined ? 0 : (held?.revision ?? 0);
    /** Takes the entries up to the present; undefined afterwards. */
    let read: SnapshotRead | undefined =
      from === undefined ? follower.beginRead() : beginResumedRead(follower);
    const confirmed = (currentAtMs: number) => {
      held = { epoch, revision, currentAtMs };
    };
    return {
      ...(from !== undefined && { from }),
      take(message: StreamMessage) {
        revision = Math.max(revision, message.sequence);
        const entry = message.sequence < firstSequence ? undefined : decode(message, follower);
        if (entry !== undefined && read !== undefined) read.take(entry);
        else if (entry !== undefined) follower.apply(entry);
        if (read === undefined) follower.reached?.({ epoch, revision });
      },
      caughtUp() {
        read?.finish(epoch);
        read = undefined;
        confirmed(nowMs);
        follower.reached?.({ epoch, revision });
        follower.current?.(epoch);
        ready.resolve();
      },
      confirmed,
    };
  }

  const source = {
    stream: snapshotBucket.streamName,
    filter: filter === everythingFilter ? undefined : snapshotBucket.subjectPrefix + filter,
    identify: async (manager: JetStreamManager) => {
      const complete = await readGenuine(manager);
      return complete && { identity: complete.epoch, firstSequence: complete.from };
    },
    begin,
  };
  const followed = followStream({ connection, logger, source });
  async function settledRevision(): Promise<number | undefined> {
    const manager = await jetstreamManager(connection, { checkAPI: false, timeout: apiTimeoutMs });
    const look = Promise.all([
      readGenuine(manager),
      streamPosition(manager, snapshotBucket.streamName),
    ]);
    const [complete, position] = await look.catch(() => []);
    const hasEpoch = complete !== undefined && complete.epoch === held?.epoch;
    const isSettled = hasEpoch && complete.rebuilding === undefined && followed.isCurrent();
    return isSettled ? position?.lastSequence : undefined;
  }

  return {
    ...followed,
    ready: ready.promise,
    settledRevision,
    isSettled: async () => (await settledRevision()) !== undefined,
  };
}

/** Reads the entry `complete`. One without a valid signature counts as missing, and is logged once. */
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

/** Collects the entries of a read, for a follower that takes them as one list. */
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
  // A consumer that delivers to the bucket stores messages under subjects of their own stream.
  if (!message.subject.startsWith(snapshotBucket.subjectPrefix)) return undefined;
  const key = message.subject.slice(snapshotBucket.subjectPrefix.length);
  if (key === completeKey) return undefined;
  const parsed = parseEntry(key, parseJson(message.payload));
  if (parsed === undefined) return undefined;
  if (parsed.ok) return isForgedDeletion(key, parsed.value, follower) ? undefined : parsed.value;
  follower.rejected(key, parsed.problem);
  return undefined;
}

/** Followers verify the entries of API keys themselves, most of them not before the keys are used. */
function isForgedDeletion(key: string, entry: SnapshotEntry, follower: SnapshotFollower): boolean {
  if (!isSignedEntry(entry)) return false;
  const { value } = entry;
  return (
    "deleted" in value && entry.address.kind !== "key" && !follower.isGenuineDeletion(key, value)
  );
}

/** A reader's state of the snapshot. */
export type HeldSnapshot = {
  epoch: string;
  /** The state contains every entry up to this sequence of the stream. */
  revision: number;
  /** The time (Unix time in milliseconds) at which the state was last known to be current. */
  currentAtMs: number;
};

/**
 * Maximum time since the state was current. The bucket keeps tombstones for a week, so that no deletion can
 * have come and gone within a day. The rest of the week is for clocks that differ.
 */
export const longestGapMs = 24 * 60 * 60 * 1_000;

/**
 * Returns the sequence from which to read what a reader with this state lacks; undefined for a full
 * read (docs/decisions/0069-snapshot-in-jetstream-kv.md).
 *
 * The reading repeats the last batch before the revision. A broker that loses its newest messages in a crash
 * may assign their sequences to other entries. If it loses more than one batch, the relay detects that and
 * writes the snapshot under a new epoch.
 */
export function resumePoint(
  held: HeldSnapshot,
  found: { epoch: string; lastSequence: number; nowMs: number },
): number | undefined {
  const { epoch, revision, currentAtMs } = held;
  const isSafe =
    epoch === found.epoch &&
    revision <= found.lastSequence &&
    Math.abs(found.nowMs - currentAtMs) < longestGapMs;
  return isSafe ? Math.max(1, revision + 1 - snapshotBatchEntries) : undefined;
}
