import {
  completeKey,
  entryKey,
  type KeyEntry,
  snapshotBucket,
  type Tombstone,
} from "@halyard/contracts";
import { readComplete } from "@halyard/testing";
import {
  AckPolicy,
  DeliverPolicy,
  type JetStreamManager,
  jetstream,
  jetstreamManager,
  StorageType,
} from "@nats-io/jetstream";
import { connect, type NatsConnection } from "@nats-io/transport-node";
import { v7 as uuidv7 } from "uuid";

/**
 * A NATS client that stores entries in the snapshot: by publishing, and by requests whose reply or delivery subject is
 * in the bucket. The messages come from a stream that the client creates.
 */
export type Forger = {
  /** Stores a payload under the key of an entry. Resolves when the snapshot's stream has a new message. */
  store(way: Way, address: KeyAddress, payload: string): Promise<void>;
  /** Stores a payload as the entry `complete`. */
  storeComplete(payload: string): Promise<void>;
  /** Publishes a message. Resolves when its stream has stored it. */
  publish(subject: string, message: unknown): Promise<void>;
  /** Returns the epoch of the snapshot, or undefined during a rebuild and while `complete` has no signature. */
  epoch(): Promise<string | undefined>;
  /** Returns the current payload of an entry in the bucket. */
  payloadAt(address: KeyAddress): Promise<string | undefined>;
  close(): Promise<void>;
};

export type KeyAddress = { kind: "key"; organizationId: string; keyId: string };
export const ways = ["publish", "direct get", "API request", "MSG.NEXT", "push consumer"] as const;
export type Way = (typeof ways)[number];

export async function openForger(natsUrl: string): Promise<Forger> {
  const connection = await connect({ servers: natsUrl });
  const manager = await jetstreamManager(connection);
  return {
    async store(way, address, payload) {
      const before = await lastSequence(manager);
      const target = snapshotBucket.subjectPrefix + entryKey(address);
      await send[way]({ connection, manager, target, payload });
      while ((await lastSequence(manager)) === before);
    },
    async storeComplete(payload) {
      connection.publish(snapshotBucket.subjectPrefix + completeKey, payload);
      await connection.flush();
    },
    async publish(subject, message) {
      await jetstream(connection).publish(subject, JSON.stringify(message));
    },
    async epoch() {
      const complete = await readComplete(manager);
      const isWhole = complete?.signature !== undefined && complete.rebuilding === undefined;
      return isWhole ? complete.epoch : undefined;
    },
    async payloadAt(address) {
      const subject = snapshotBucket.subjectPrefix + entryKey(address);
      const message = await manager.direct.getMessage(snapshotBucket.streamName, {
        last_by_subj: subject,
      });
      return message?.string();
    },
    close: () => connection.close(),
  };
}

type Attack = {
  connection: NatsConnection;
  manager: JetStreamManager;
  target: string;
  payload: string;
};

const send: Record<Way, (attack: Attack) => Promise<void>> = {
  async publish({ connection, target, payload }) {
    connection.publish(target, payload);
    await connection.flush();
  },
  async "direct get"({ connection, manager, target, payload }) {
    const stream = await sourceOf(manager, connection, payload);
    connection.publish(`$JS.API.DIRECT.GET.${stream}`, '{"seq":1}', { reply: target });
    await connection.flush();
  },
  async "API request"({ connection, manager, target, payload }) {
    const stream = await sourceOf(manager, connection, payload);
    connection.publish(`$JS.API.STREAM.MSG.GET.${stream}`, '{"seq":1}', { reply: target });
    await connection.flush();
  },
  async "MSG.NEXT"({ connection, manager, target, payload }) {
    const stream = await sourceOf(manager, connection, payload, likenessOf(target));
    await manager.consumers.add(stream, { durable_name: "pull", ack_policy: AckPolicy.None });
    connection.publish(`$JS.API.CONSUMER.MSG.NEXT.${stream}.pull`, "1", { reply: target });
    await connection.flush();
  },
  async "push consumer"({ connection, manager, target, payload }) {
    const stream = await sourceOf(manager, connection, payload, likenessOf(target));
    // Without a subscription to the subject, the server delivers nothing.
    connection.subscribe(target);
    await manager.consumers.add(stream, {
      durable_name: "push",
      ack_policy: AckPolicy.None,
      deliver_policy: DeliverPolicy.All,
      deliver_subject: target,
    });
  },
};

/**
 * Returns a subject of the same length. The server stores the delivery of a consumer under the subject of the delivered
 * message. No other stream can have the subjects of the bucket, but it can have as many characters before the entry's
 * key.
 */
const likenessOf = (target: string) => target.replace("$KV", "XKV");

/** Creates a stream that contains this message. */
async function sourceOf(
  manager: JetStreamManager,
  connection: NatsConnection,
  payload: string,
  subject?: string,
): Promise<string> {
  const name = `forger_${uuidv7()}`;
  const source = subject ?? name;
  await manager.streams.add({
    name,
    subjects: [source],
    storage: StorageType.Memory,
    allow_direct: true,
  });
  await jetstream(connection).publish(source, payload);
  return name;
}

async function lastSequence(manager: JetStreamManager): Promise<number> {
  return (await manager.streams.info(snapshotBucket.streamName)).state.last_seq;
}

/** Parses the entry of a key, or its tombstone. */
export const parseKeyEntry = (payload: string) => JSON.parse(payload) as KeyEntry & Tombstone;
