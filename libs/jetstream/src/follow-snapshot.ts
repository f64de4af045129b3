import {
  checkEntry,
  completeKey,
  type EntryAddress,
  everythingFilter,
  type LiveEntry,
  parseEntryKey,
  type SnapshotRevision,
  snapshotBucket,
  type Tombstone,
} from "@halyard/contracts";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { type FollowedStream, followStream } from "./follow-stream.ts";
import { parseJson } from "./parse-json.ts";
import { readEpoch } from "./read-epoch.ts";
import type { StreamMessage } from "./read-stream.ts";
import { type HeldSnapshot, resumePoint } from "./resume-point.ts";

/**
 * Follows the snapshot: everything first, then each change. The reader keeps its state when an attempt ends,
 * and the next attempt reads only what the state lacks, if that is safe (`resumePoint`). Otherwise it reads
 * everything.
 *
 * A reading counts only if the bucket is complete and has the same epoch before and after it.
 */
export type SnapshotEntry = { address: EntryAddress; value: LiveEntry | Tombstone };

export type SnapshotFollower = {
  /** Begins a full read. The state so far stays in use until the read is finished. */
  beginRead(): SnapshotRead;
  /** One entry as it is now. Entries may repeat or come late: versions decide. */
  apply(entry: SnapshotEntry): void;
  /** The entries that the state lacked after an interruption. By default each one is applied. */
  resume?(epoch: string, entries: readonly SnapshotEntry[]): void;
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

/** A full read that is under way. It may be abandoned. */
export type SnapshotRead = {
  take(entry: SnapshotEntry): void;
  /** The entries taken are all that exist. */
  finish(epoch: string): void;
};

export type FollowedSnapshot = FollowedStream & {
  /** Resolves when the state is current for the first time. */
  ready: Promise<void>;
};

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
  let { held } = options;

  function begin({ identity: epoch, lastSequence }: { identity: string; lastSequence: number }) {
    const nowMs = Date.now();
    const from = held && resumePoint(held, { epoch, lastSequence, nowMs });
    let read = from === undefined ? follower.beginRead() : collectRead(resumeWith(follower))();
    let revision = from === undefined ? 0 : (held?.revision ?? 0);
    let take = (entry: SnapshotEntry) => read.take(entry);
    let reached = () => {};
    const confirmed = (currentAtMs: number) => {
      held = { epoch, revision, currentAtMs };
    };
    return {
      ...(from !== undefined && { from }),
      take(message: StreamMessage) {
        const entry = decode(message, follower);
        revision = Math.max(revision, message.sequence);
        if (entry !== undefined) take(entry);
        reached();
      },
      caughtUp() {
        read.finish(epoch);
        // Its entries are not needed any more.
        read = nothingToRead;
        take = follower.apply;
        reached = () => follower.reached?.({ epoch, revision });
        confirmed(nowMs);
        reached();
        follower.current?.(epoch);
        ready.resolve();
      },
      confirmed,
    };
  }

  const source = {
    stream: snapshotBucket.streamName,
    filter: filter === everythingFilter ? undefined : snapshotBucket.subjectPrefix + filter,
    identify: readEpoch,
    begin,
  };
  return { ...followStream({ connection, logger, source }), ready: ready.promise };
}

const nothingToRead: SnapshotRead = { take: () => undefined, finish: () => undefined };

/** Collects the entries of a read, for a follower that takes them as one list. */
export function collectRead(
  finish: (epoch: string, entries: readonly SnapshotEntry[]) => void,
): () => SnapshotRead {
  return () => {
    const entries: SnapshotEntry[] = [];
    return {
      take: (entry) => void entries.push(entry),
      finish: (epoch) => finish(epoch, entries),
    };
  };
}

function resumeWith(follower: SnapshotFollower) {
  return (epoch: string, entries: readonly SnapshotEntry[]) => {
    if (follower.resume !== undefined) follower.resume(epoch, entries);
    else for (const entry of entries) follower.apply(entry);
  };
}

function decode(message: StreamMessage, follower: SnapshotFollower): SnapshotEntry | undefined {
  const key = message.subject.slice(snapshotBucket.subjectPrefix.length);
  if (key === completeKey) return undefined;
  const address = parseEntryKey(key);
  // A newer management may keep kinds of entries that this version has no use for.
  if (address === undefined) return undefined;
  const checked = checkEntry(address.kind, parseJson(message.payload));
  if (checked.ok) return { address, value: checked.value };
  follower.rejected(key, checked.problem);
  return undefined;
}
