import { leasesBucket } from "@halyard/contracts";
import {
  type FollowedStream,
  followBucket,
  isBrokerUnavailable,
  parseJson,
  watchConnection,
} from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import {
  JetStreamApiCodes,
  JetStreamApiError,
  JetStreamError,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";

/**
 * The bucket LEASES, which all edges share. An implementation may respond late or not at all, but never lets two writes
 * over the same revision succeed.
 */
export type LeaseStore = {
  /**
   * Writes over a revision and returns the new one. Revision 0 means that the key has no value. Does not create the
   * bucket, which management does. "unknown": no response arrived, and the write may still succeed.
   */
  write(key: string, value: object, over: number): Promise<number | "conflict" | "unknown">;
  /** Removes a key and all its revisions. */
  forget(key: string): Promise<unknown>;
  /** Delivers every entry, and then each change, in the order of the writes. */
  follow(follower: LeaseFollower): void;
  isConnected(): boolean;
  /** True while the connection is up and every entry of the bucket has been delivered. */
  isCurrent(): boolean;
  stop(): Promise<void>;
};

export type LeaseFollower = {
  /**
   * Called before every entry is delivered from the beginning. An entry that is missing by `onCaughtUp` no longer
   * exists.
   */
  onBegin(): void;
  onEntry(key: string, entry: StoredEntry): void;
  onCaughtUp(): void;
};

/** `value` is parsed JSON; undefined for anything else, null for a deleted entry. */
export type StoredEntry = { value: unknown; revision: number };

/** Timeout of a request. NATS usually responds within milliseconds, and `countedForMs` is many times this timeout. */
const timeout = 1_000;

/** The codes for "wrong last sequence". The broker also returns them while another write is in flight. */
const conflicts: readonly number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

type Nats = Awaited<ReturnType<typeof clientsOf>> & { followed: FollowedStream };

/**
 * The bucket LEASES in NATS. The stream's leader rejects every write over a revision but the first. In a
 * cluster this needs nats-server 2.9.21 or later: before, two concurrent writes could both succeed
 * (https://github.com/nats-io/nats-server/pull/4319).
 */
export function createNatsLeaseStore(options: {
  connection: Promise<NatsConnection>;
  logger: Logger;
}): LeaseStore {
  const { logger } = options;
  let nats: Nats | undefined;
  let isStopped = false;
  let isFailing = false;

  async function follow({ onBegin, onEntry, onCaughtUp }: LeaseFollower): Promise<void> {
    const connection = await options.connection;
    const clients = await clientsOf(connection);
    if (isStopped) return;
    const followed = followBucket({
      ...{ connection, bucket: leasesBucket, filter: ">", onBegin, onCaughtUp, logger },
      onEntry: ({ key, payload, revision }) => {
        // A KV client deletes a value by writing an empty one.
        onEntry(key, { value: payload.length === 0 ? null : parseJson(payload), revision });
      },
    });
    nats = { ...clients, followed };
  }

  /** Logs the first failure of a series. */
  function failed(err: unknown): void {
    if (!isBrokerUnavailable(err) && !(err instanceof JetStreamError)) throw err;
    if (!isFailing) logger.warn({ err }, "the bucket LEASES is unavailable");
    isFailing = true;
  }

  return {
    isConnected: () => nats?.watch.isConnected() === true,
    isCurrent: () => nats?.followed.isCurrent() === true,
    follow: (follower) => void follow(follower),
    async write(key, value, over) {
      if (nats === undefined) return "unknown";
      const publish = { expect: { lastSubjectSequence: over }, timeout, retries: 0 };
      const subject = leasesBucket.subjectPrefix + key;
      try {
        const { seq } = await nats.publisher.publish(subject, JSON.stringify(value), publish);
        isFailing = false;
        return seq;
      } catch (err) {
        if (err instanceof JetStreamApiError && conflicts.includes(err.code)) return "conflict";
        failed(err);
        return "unknown";
      }
    },
    async forget(key) {
      const filter = leasesBucket.subjectPrefix + key;
      await nats?.manager.streams.purge(leasesBucket.streamName, { filter }).catch(failed);
    },
    async stop() {
      isStopped = true;
      await nats?.followed.stop();
    },
  };
}

async function clientsOf(connection: NatsConnection) {
  const manager = await jetstreamManager(connection, { checkAPI: false, timeout });
  return { publisher: jetstream(connection), manager, watch: watchConnection(connection) };
}
