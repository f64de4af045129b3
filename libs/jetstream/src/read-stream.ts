import {
  AckPolicy,
  type ConsumerConfig,
  type ConsumerInfo,
  DeliverPolicy,
  JetStreamApiError,
  type JetStreamManager,
  jetstreamManager,
} from "@nats-io/jetstream";
import {
  createInbox,
  type Msg,
  type NatsConnection,
  nanos,
  nuid,
  type Subscription,
} from "@nats-io/transport-node";
import { type Progress, progressOfAll, progressOfSome } from "./catch-up.ts";
import { failureName } from "./failures.ts";
import {
  type Delivery,
  type Heartbeat,
  parsePushMessage,
  type StreamMessage,
} from "./push-message.ts";
import { startWatchdog, type Watchdog } from "./watchdog.ts";

/**
 * Reads a stream from a sequence on and continues with new messages, with an ephemeral push consumer that uses flow
 * control and no acknowledgements. It never recovers by itself. Any irregularity (a missing message, a missed
 * heartbeat, a lost connection, a deleted stream) ends the read with a reason, and the caller starts another one.
 *
 * A bucket with a history of one is read from its first sequence, which delivers the newest value of each key. The
 * delivery policy `last_per_subject` would make the broker examine every subject while it blocks all writes.
 */
type Reading = {
  /** Resolves when everything that was in the stream at the start has been delivered. */
  caughtUp: Promise<void>;
  /** Resolves with the reason when the read has ended, by an irregularity or by `stop`. */
  ended: Promise<string>;
  stop(reason: string): void;
};

/** Interval of the broker's heartbeats. Two missing heartbeats end the read. */
const heartbeatMs = 1_000;
const silenceMs = 3 * heartbeatMs;
/** The broker deletes a consumer without a subscriber after this time. */
const consumerLifetimeMs = 30_000;
/** Time-out of creating a consumer. A busy broker with hundreds of thousands of subjects needs seconds. */
const defaultCreationTimeoutMs = 10_000;
const consumerNotFound = 10014;

/** Returns the inbox prefix of a connection, which may subscribe to no other subjects. */
function inboxPrefixIn(connection: NatsConnection): string | undefined {
  // The client's interface does not contain the options.
  return (connection as { options?: { inboxPrefix?: string } }).options?.inboxPrefix;
}

type ReadOptions = {
  connection: NatsConnection;
  manager: JetStreamManager;
  stream: string;
  /** Filter of subjects; undefined for the whole stream. Servers before 2.10 accept no list of filters. */
  filter: string | undefined;
  /** Delivers messages without their payloads. */
  headersOnly?: boolean;
  from: number;
  /** Last sequence of the stream, looked up before the read. */
  lastSequence: number;
  /** Called before the consumer is created. Returns the time-out of its creation. */
  onCreation?: () => number;
  onMessage(message: StreamMessage): void;
};

export async function readStream(options: ReadOptions): Promise<Reading> {
  const reading = new PushReading(options);
  await reading.start();
  return reading;
}

class PushReading implements Reading {
  readonly #options: ReadOptions;
  readonly #name = `halyard_${nuid.next()}`;
  readonly #inbox: string;
  readonly #subscription: Subscription;
  readonly #caughtUp = Promise.withResolvers<void>();
  readonly #ended = Promise.withResolvers<string>();
  /** Undefined when the read has caught up. */
  #progress: Progress | undefined;
  #received = 0;
  #watchdog: Watchdog | undefined;
  #hasEnded = false;

  constructor(options: ReadOptions) {
    this.#options = options;
    this.#progress = (options.filter === undefined ? progressOfAll : progressOfSome)({
      ...options,
      consumer: this.#name,
      received: () => this.#received,
      onCaughtUp: () => {
        this.#progress = undefined;
        this.#caughtUp.resolve();
      },
      onFailure: (reason) => this.stop(reason),
    });
    this.#inbox = createInbox(inboxPrefixIn(options.connection));
    this.#subscription = options.connection.subscribe(this.#inbox, {
      callback: (error, message) =>
        error === null ? this.#receive(message) : this.stop(failureName(error)),
    });
  }

  get caughtUp(): Promise<void> {
    return this.#caughtUp.promise;
  }

  get ended(): Promise<string> {
    return this.#ended.promise;
  }

  async start(): Promise<void> {
    const identity = { name: this.#name, deliver_subject: this.#inbox };
    try {
      await awaitClusterLeader(this.#options, this.#name);
      this.#progress?.created(await addConsumer(this.#options, identity));
    } catch (error) {
      this.stop("the consumer could not be created");
      throw error;
    }
    if (this.#hasEnded) return;
    this.#watchdog = startWatchdog({
      stalledAfterMs: silenceMs,
      onStalled: () => this.stop("no heartbeat from the broker"),
    });
  }

  #receive(message: Msg): void {
    this.#watchdog?.progress();
    const parsed = parsePushMessage(message);
    if (parsed.kind === "failure") this.stop(parsed.reason);
    else if (parsed.kind === "flow control") message.respond();
    else if (parsed.kind === "heartbeat") this.#receiveHeartbeat(parsed);
    else this.#deliver(parsed);
  }

  #receiveHeartbeat({ delivered, lastSequence, stalled }: Heartbeat): void {
    if (stalled !== undefined) this.#options.connection.publish(stalled);
    if (delivered !== this.#received) this.stop("a message was missed");
    // The last messages of a stream may have been removed. Then only a heartbeat shows that no message follows.
    else this.#progress?.idle(lastSequence);
  }

  #deliver({ message, delivery, pending }: Delivery): void {
    if (delivery !== this.#received + 1) {
      this.stop("a message was missed");
      return;
    }
    this.#received = delivery;
    this.#options.onMessage(message);
    this.#progress?.delivered({ sequence: message.sequence, pending });
  }

  stop(reason: string): void {
    if (this.#hasEnded) return;
    this.#hasEnded = true;
    this.#watchdog?.stop();
    this.#subscription.unsubscribe();
    // Deletes the consumer even after a time-out, because the broker may still create it.
    const { manager, stream } = this.#options;
    void manager.consumers.delete(stream, this.#name).catch(() => undefined);
    this.#ended.resolve(reason);
  }
}

/**
 * Rejects after a short time if a cluster has no leader. Only the leader creates consumers, and reports that one does
 * not exist. A request to create one during an election is lost, and would end only by its long time-out.
 */
async function awaitClusterLeader(
  { manager, stream }: ReadOptions,
  newConsumer: string,
): Promise<void> {
  try {
    await manager.consumers.info(stream, newConsumer);
  } catch (error) {
    if (!(error instanceof JetStreamApiError) || error.code !== consumerNotFound) throw error;
  }
}

async function addConsumer(
  { connection, stream, filter, headersOnly = false, from, onCreation }: ReadOptions,
  identity: { name: string; deliver_subject: string },
): Promise<ConsumerInfo> {
  const config: Partial<ConsumerConfig> = {
    ...identity,
    ack_policy: AckPolicy.None,
    max_deliver: 1,
    flow_control: true,
    idle_heartbeat: nanos(heartbeatMs),
    inactive_threshold: nanos(consumerLifetimeMs),
    mem_storage: true,
    num_replicas: 1,
    deliver_policy: DeliverPolicy.StartSequence,
    opt_start_seq: from,
    headers_only: headersOnly,
    ...(filter === undefined ? {} : { filter_subject: filter }),
  };
  const manager = await jetstreamManager(connection, {
    checkAPI: false,
    timeout: onCreation?.() ?? defaultCreationTimeoutMs,
  });
  return manager.consumers.add(stream, config);
}
