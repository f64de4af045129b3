import { leasesBucket } from "@halyard/contracts";
import {
  ensureLeases,
  type FollowedStream,
  followBucket,
  isBrokerAway,
  parseJson,
} from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  JetStreamError,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { LeaseFollower, LeaseStore } from "./lease-store.ts";

/**
 * The bucket LEASES in NATS. A write names the revision that it replaces, and the stream's leader rejects
 * every write over it but the first. In a cluster this needs nats-server 2.9.21 or later: before, two
 * concurrent writes could both succeed (https://github.com/nats-io/nats-server/pull/4319).
 */
export type NatsLeaseStore = LeaseStore & { stop(): Promise<void> };

/** NATS usually answers within milliseconds, and `countedForMs` is many times this. */
const answerTimeoutMs = 1_000;

type Client = { publisher: JetStreamClient; manager: JetStreamManager };

export function createNatsLeaseStore(options: {
  connection: Promise<NatsConnection>;
  /** Number of replicas of the bucket, if it is created here. */
  replicas: number;
  logger: Logger;
}): NatsLeaseStore {
  const { replicas, logger } = options;
  let follower: LeaseFollower | undefined;
  let client: Client | undefined;
  let followed: FollowedStream | undefined;
  let isStopped = false;
  let isFailing = false;

  async function begin(): Promise<void> {
    const connection = await options.connection;
    if (isStopped) return;
    const manager = await jetstreamManager(connection, {
      checkAPI: false,
      timeout: answerTimeoutMs,
    });
    client = { publisher: jetstream(connection), manager };
    followed = followBucket({
      connection,
      bucket: leasesBucket,
      filter: ">",
      onBegin: () => follower?.onBegin(),
      onEntry: ({ key, payload, revision }) =>
        follower?.onEntry(key, { value: parseValue(payload), revision }),
      onCaughtUp: () => follower?.onCaughtUp(),
      logger,
    });
  }

  /** Sends a request; returns undefined without an answer. Logs the first failure of a series. */
  async function request<T>(send: (client: Client) => Promise<T>): Promise<T | undefined> {
    if (client === undefined) return undefined;
    try {
      const answer = await send(client);
      isFailing = false;
      return answer;
    } catch (err) {
      if (!isBrokerAway(err) && !(err instanceof JetStreamError)) throw err;
      if (!isFailing) logger.warn({ err }, "the bucket LEASES is unavailable");
      isFailing = true;
      return undefined;
    }
  }

  void begin();
  return {
    follow(following) {
      follower = following;
    },
    isConnected: () => followed?.isConnected() === true,
    isCurrent: () => followed?.isCurrent() === true,
    prepare: async () =>
      (await request(({ manager }) => ensureLeases(manager, replicas).then(() => true))) === true,
    async write(key, value, over) {
      const written = await request(({ publisher }) =>
        publishOver(publisher, { key, value, over }),
      );
      return written ?? { outcome: "unknown" };
    },
    async forget(key) {
      const filter = leasesBucket.subjectPrefix + key;
      await request(({ manager }) => manager.streams.purge(leasesBucket.streamName, { filter }));
    },
    async stop() {
      isStopped = true;
      await followed?.stop();
    },
  };
}

/** "wrong last sequence", also while another write is in flight. */
const conflicts: readonly number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

async function publishOver(
  publisher: JetStreamClient,
  { key, value, over }: { key: string; value: object; over: number },
) {
  try {
    const { seq } = await publisher.publish(
      leasesBucket.subjectPrefix + key,
      JSON.stringify(value),
      { expect: { lastSubjectSequence: over }, timeout: answerTimeoutMs, retries: 0 },
    );
    return { outcome: "written", revision: seq } as const;
  } catch (error) {
    if (error instanceof JetStreamApiError && conflicts.includes(error.code))
      return { outcome: "conflict" } as const;
    throw error;
  }
}

/** A KV client replaces a deleted value by an empty one. */
function parseValue(payload: Uint8Array): unknown {
  return payload.length === 0 ? null : parseJson(payload);
}
