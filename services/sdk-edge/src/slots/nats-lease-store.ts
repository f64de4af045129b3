import { leaseKey, leasesBucket } from "@halyard/contracts";
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
import type { LeaseFollower, LeaseStore, StoredEntry } from "./lease-store.ts";

/**
 * The leases' bucket in NATS. A write is published with the revision that it names, and whoever leads
 * the stream refuses all but the first over each. In a cluster that holds from nats-server 2.9.21 on:
 * before, two writes at the same time could both succeed (https://github.com/nats-io/nats-server/pull/4319).
 *
 * Reading asks the stream itself, whichever replica answers. The older request goes through the server's
 * API, and nats-server 2.9 crashes when that one meets a stream that is just being made.
 */
export type NatsLeaseStore = LeaseStore & { stop(): Promise<void> };

/** The broker answers within milliseconds. A lease outlives many times this. */
const answerTimeoutMs = 1_000;

type Client = { publisher: JetStreamClient; manager: JetStreamManager };

export function createNatsLeaseStore(options: {
  connection: Promise<NatsConnection>;
  /** On how many servers the bucket is kept, if it is made here. */
  replicas: number;
  logger: Logger;
}): NatsLeaseStore {
  const { replicas, logger } = options;
  const report = reportChanges(logger);
  const followers: LeaseFollower[] = [];
  let client: Client | undefined;
  let followed: FollowedStream | undefined;
  let isStopped = false;

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
      filter: leaseKey.everyEdge,
      onBegin: () => tell((follower) => follower.onBegin()),
      onEntry: ({ key, payload, revision }) =>
        tell((follower) => follower.onEntry(leaseIdIn(key), storedEntry(payload, revision))),
      onCaughtUp: () => tell((follower) => follower.onCaughtUp()),
      logger,
    });
  }

  function tell(say: (follower: LeaseFollower) => void): void {
    for (const follower of followers) say(follower);
  }

  /** Asks NATS; undefined when nobody answers. */
  async function ask<T>(question: (asked: Client) => Promise<T>): Promise<T | undefined> {
    if (client === undefined) return undefined;
    try {
      const answer = await question(client);
      report.fine();
      return answer;
    } catch (error) {
      if (!isBrokerAway(error) && !(error instanceof JetStreamError)) throw error;
      report.trouble(error);
      return undefined;
    }
  }

  void begin();
  return {
    follow: (follower) => void followers.push(follower),
    isCurrent: () => followed?.isCurrent() === true,
    prepare: async () =>
      (await ask(({ manager }) => ensureLeases(manager, replicas).then(() => true))) === true,
    async read(key) {
      const found = await ask(async ({ manager }) => ({
        message: await manager.direct.getMessage(leasesBucket.streamName, {
          last_by_subj: leasesBucket.subjectPrefix + key,
        }),
      }));
      if (found === undefined) return { outcome: "unknown" };
      if (found.message === null) return { outcome: "read", entry: undefined };
      const { data, seq } = found.message;
      return { outcome: "read", entry: storedEntry(data, seq) };
    },
    async write(key, value, over) {
      const written = await ask(({ publisher }) => publishOver(publisher, { key, value, over }));
      return written ?? { outcome: "unknown" };
    },
    async forget(key) {
      const filter = leasesBucket.subjectPrefix + key;
      await ask(({ manager }) => manager.streams.purge(leasesBucket.streamName, { filter }));
    },
    async stop() {
      isStopped = true;
      await followed?.stop();
    },
  };
}

/** "wrong last sequence", and the same where another write is on its way. */
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

/** What KV clients leave in the place of what they delete has no content. */
function storedEntry(payload: Uint8Array, revision: number): StoredEntry {
  return { value: payload.length === 0 ? null : parseJson(payload), revision };
}

function leaseIdIn(key: string): string {
  return key.slice(leaseKey.edge("").length);
}

/** Logs the first trouble of a row. */
function reportChanges(logger: Logger) {
  let isInTrouble = false;
  return {
    fine() {
      isInTrouble = false;
    },
    trouble(error: unknown) {
      if (!isInTrouble) logger.warn({ err: error }, "the leases for streams cannot be asked for");
      isInTrouble = true;
    },
  };
}
