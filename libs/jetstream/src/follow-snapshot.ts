import {
  checkEntry,
  completeKey,
  type EntryAddress,
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

/**
 * Follows the snapshot: a full read, delivered as a whole, then each change. A full read counts only if
 * the bucket is complete and has the same epoch before and after it.
 */
export type SnapshotEntry = { address: EntryAddress; value: LiveEntry | Tombstone };

export type SnapshotFollower = {
  /** All entries, after a full read. What is not among them does not exist. */
  replace(epoch: string, entries: readonly SnapshotEntry[]): void;
  /** One entry as it is now. Entries may repeat or come late: versions decide. */
  apply(entry: SnapshotEntry): void;
  /** An entry that does not fit its schema was left out. */
  rejected(key: string, problem: string): void;
  /**
   * Every entry up to this revision was handed over. Called after `replace`, and after each later message,
   * also one without an entry for this follower.
   */
  reached?(revision: SnapshotRevision): void;
};

export type FollowedSnapshot = FollowedStream & {
  /** Resolves after the first full read. */
  ready: Promise<void>;
};

export function followSnapshot(options: {
  connection: NatsConnection;
  filter: string;
  follower: SnapshotFollower;
  logger: Logger;
}): FollowedSnapshot {
  const { connection, follower, logger } = options;
  const ready = Promise.withResolvers<void>();
  const followed = followStream({
    connection,
    logger,
    source: {
      stream: snapshotBucket.streamName,
      filter: snapshotBucket.subjectPrefix + options.filter,
      identify: readEpoch,
      begin() {
        let gathered: SnapshotEntry[] | undefined = [];
        let epoch = "";
        let revision = 0;
        return {
          take(message) {
            const entry = decode(message, follower);
            revision = message.sequence;
            if (gathered === undefined) handOver(follower, entry, { epoch, revision });
            else if (entry !== undefined) gathered.push(entry);
          },
          caughtUp(identity) {
            epoch = identity;
            follower.replace(epoch, gathered ?? []);
            gathered = undefined;
            follower.reached?.({ epoch, revision });
            ready.resolve();
          },
        };
      },
    },
  });
  return { ...followed, ready: ready.promise };
}

function handOver(
  follower: SnapshotFollower,
  entry: SnapshotEntry | undefined,
  revision: SnapshotRevision,
): void {
  if (entry !== undefined) follower.apply(entry);
  follower.reached?.(revision);
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
