import type { EntrySigner, KeySignatures } from "@halyard/api-keys";
import { flagEventsStream, type SnapshotRevision, snapshotBucket } from "@halyard/contracts";
import { type StreamPosition, snapshotPosition, streamPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { pause, type WakeUp } from "@halyard/timing";
import type { Counter, Gauge } from "prom-client";
import type { Plans } from "../organizations/organization.ts";
import { notifyPublished } from "../outbox/notifications.ts";
import type { Publications } from "../outbox/publications.ts";
import { readBacklog, type StreamName } from "../outbox/unsent-rows.ts";
import { applyPlans, applyPlansIntervalMs, warnOfOtherPlans } from "./apply-plans.ts";
import { type Broker, StreamMovedError } from "./broker.ts";
import { type EventsSize, synchroniseEvents, watchEventsSize } from "./events.ts";
import { LeadershipLostError, type Lease, renewIntervalMs } from "./lease.ts";
import { confirmStreams } from "./records.ts";
import { discardStreams, findUnexplained } from "./restored-database.ts";
import { synchroniseSnapshot } from "./snapshot.ts";
import { createStreamPublisher, type StreamPublisher } from "./stream-publisher.ts";

/**
 * One round of leading: detect a database that is older than the streams, bring outbox and streams to
 * agree, then publish until something is out of the ordinary. The tasks of a round end together; no task of one round meets one of the next.
 */
export type TermOptions = {
  sql: Sql;
  broker: Broker;
  lease: Lease;
  publications: Publications;
  plans: Plans;
  /** Signs the entries of API keys; undefined: they are not signed. */
  signer: EntrySigner | undefined;
  /** Verifies the entries of API keys that this leader finds in the snapshot. */
  signatures: KeySignatures;
  now: () => Date;
  newId: () => string;
  newEpoch: () => string;
  /** Wakes the lane of each stream. */
  wakeUps: Record<StreamName, WakeUp>;
  /** Called when the snapshot is in order and publishing begins. */
  onLeading: () => void;
  metrics: RelayMetrics;
};

export type RelayMetrics = {
  leading: Gauge;
  published: Counter;
  termsFailed: Counter;
  databaseBehind: Counter;
  unsentRows: Gauge;
  oldestUnsentSeconds: Gauge;
  eventsBytes: Gauge;
  eventsMaxBytes: Gauge;
  eventsUnread: Gauge;
};

/** What is found without a hint, when a notification was lost or its sender died. */
const pollIntervalMs = 250;

/** Ends by an error, or quietly when `stop` is aborted. The lease must be held. */
export async function leadOneTerm(options: TermOptions, stop: AbortSignal): Promise<void> {
  await together(stop, (signal) => [keepLease(options, signal), publish(options, signal)]);
}

/** Runs tasks until the first of them ends, then ends the others and waits until they have. */
async function together(
  stop: AbortSignal,
  start: (signal: AbortSignal) => Promise<void>[],
): Promise<void> {
  const ending = new AbortController();
  const tasks = start(AbortSignal.any([stop, ending.signal]));
  try {
    await Promise.race(tasks);
  } finally {
    ending.abort();
    await Promise.allSettled(tasks);
  }
}

async function keepLease({ lease }: TermOptions, signal: AbortSignal): Promise<void> {
  while (await pause(renewIntervalMs, signal))
    if (!(await lease.renew())) throw new LeadershipLostError("the lease has ended");
}

/** The streams as this round knows them, once it has brought them to agree. */
type StreamPositions = { events?: StreamPosition; snapshot?: StreamPosition };
type StreamPublishers = { events?: StreamPublisher; snapshot?: StreamPublisher };

/**
 * The two streams do not wait for each other: while a log of millions is refilled, the snapshot, by
 * which flags and keys take effect, goes on.
 */
async function publish(options: TermOptions, signal: AbortSignal): Promise<void> {
  const { sql, broker, publications, lease, signer, wakeUps, metrics } = options;
  const { published } = metrics;
  const positions: StreamPositions = {};
  const publishers: StreamPublishers = {};
  await discardStreamsAhead(options, signal);
  await together(signal, (ended) => {
    const isLeading = () => lease.isHeld() && !ended.aborted;
    const shared = { sql, lease, broker, publications, isLeading };
    const publishEntries = async () => {
      const synchronised = await synchroniseSnapshot(sql, lease, broker, { ...options, isLeading });
      positions.snapshot = synchronised;
      const { lastSequence, epoch } = synchronised;
      await publishRevision(options, { epoch, revision: lastSequence });
      options.onLeading();
      const publisher = createStreamPublisher({
        ...shared,
        stream: "snapshot",
        epoch,
        signer,
        lastSequence,
      });
      publishers.snapshot = publisher;
      const whenIdle = () => {
        // Looked at while the lane is idle, so that its own messages are not taken for another client's.
        if ((positions.snapshot?.lastSequence ?? 0) > publisher.lastSequence())
          throw new StreamMovedError("another client has written to the snapshot");
      };
      await runPublisher(publisher, { wakeUp: wakeUps.snapshot, published, whenIdle }, ended);
    };
    const publishEvents = async () => {
      positions.events = await synchroniseEvents(sql, lease, broker, publications);
      const { lastSequence } = positions.events;
      const publisher = createStreamPublisher({ ...shared, stream: "events", lastSequence });
      publishers.events = publisher;
      await runPublisher(publisher, { wakeUp: wakeUps.events, published }, ended);
    };
    return [
      publishEntries(),
      publishEvents(),
      watchStreams(positions, options, ended),
      confirmRegularly(publishers, options, ended),
      measureBacklog(options, ended),
      watchEventsSize({ broker, onEventsSize: (size) => showEventsSize(size, metrics) }, ended),
      applyPlansRegularly(options, ended),
    ];
  });
}

function showEventsSize({ bytes, maxBytes, unread }: EventsSize, metrics: RelayMetrics): void {
  metrics.eventsBytes.set(bytes);
  metrics.eventsMaxBytes.set(maxBytes ?? 0);
  metrics.eventsUnread.set(unread);
}

/** Notifies all replicas of the snapshot's revision, so that they know which edges are current. */
async function publishRevision(
  { sql, publications }: TermOptions,
  revision: SnapshotRevision,
): Promise<void> {
  publications.confirm([], revision);
  await notifyPublished(sql, [], revision);
}

/** Discards the streams if the database is older than they are. */
async function discardStreamsAhead(options: TermOptions, signal: AbortSignal): Promise<void> {
  const { sql, lease, broker, signatures } = options;
  const ahead = await findUnexplained(sql, lease, broker, signatures);
  if (ahead === undefined) return;
  options.metrics.databaseBehind.inc();
  const isLeading = () => lease.isHeld() && !signal.aborted;
  await discardStreams(ahead, { lease, broker, isLeading });
}

/** Number of messages in a batch from which several writes are in progress, so that more follow. */
const severalWrites = 4;
/**
 * Pause after such a batch, so that the next one has more rows: most of what a batch costs PostgreSQL does not depend
 * on its size. A single write never waits for it.
 */
const gatherMs = 4;

/** Publishes when the lane is woken, and regularly in case a hint was lost. */
async function runPublisher(
  publisher: StreamPublisher,
  { wakeUp, published, whenIdle }: { wakeUp: WakeUp; published: Counter; whenIdle?: () => void },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    const messages = await publisher.drain();
    published.inc(messages);
    whenIdle?.();
    if (messages >= severalWrites) await pause(gatherMs, signal);
    await wakeUp.sleep(pollIntervalMs, signal);
  }
}

/** Notices a stream that was deleted, made anew or cut short while nothing is being published. */
async function watchStreams(
  positions: StreamPositions,
  { broker: { manager } }: TermOptions,
  signal: AbortSignal,
): Promise<void> {
  while (await pause(renewIntervalMs, signal)) {
    // What is known is taken before looking: a stream that is being made meanwhile is left alone.
    const known = { ...positions };
    if (known.events !== undefined) {
      const events = await streamPosition(manager, flagEventsStream.name);
      positions.events = checkContinues(flagEventsStream.name, known.events, events);
    }
    if (known.snapshot !== undefined) {
      const snapshot = await snapshotPosition(manager);
      positions.snapshot = checkContinues(snapshotBucket.bucket, known.snapshot, snapshot);
      if (snapshot?.isComplete !== true)
        throw new StreamMovedError(`${snapshotBucket.bucket} is not complete`);
    }
  }
}

function checkContinues(
  name: string,
  before: StreamPosition,
  after: StreamPosition | undefined,
): StreamPosition {
  if (after?.createdAt !== before.createdAt) throw new StreamMovedError(`${name} was deleted`);
  if (after.lastSequence < before.lastSequence) throw new StreamMovedError(`${name} lost its end`);
  return after;
}

/** Ends the round when the database has lost what this round recorded, even if no connection was lost. */
async function confirmRegularly(
  publishers: StreamPublishers,
  { lease }: TermOptions,
  signal: AbortSignal,
): Promise<void> {
  do {
    // Read before the database, because the lanes keep recording.
    const recorded = {
      events: publishers.events?.lastSequence() ?? 0,
      snapshot: publishers.snapshot?.lastSequence() ?? 0,
    };
    await lease.recordAsLeader((tx) => confirmStreams(tx, recorded));
  } while (await pause(renewIntervalMs, signal));
}

/** Above this it matters only that it is much; counting further would cost more than it tells. */
const maxCountedBacklog = 10_000;

async function measureBacklog({ sql, metrics }: TermOptions, signal: AbortSignal): Promise<void> {
  do {
    const { rows, oldestSeconds } = await readBacklog(sql, maxCountedBacklog);
    metrics.unsentRows.set(rows);
    metrics.oldestUnsentSeconds.set(oldestSeconds);
  } while (await pause(renewIntervalMs, signal));
}

/** What fails here is tried again at its time: an organization's limits may wait, all else may not. */
async function applyPlansRegularly(options: TermOptions, signal: AbortSignal): Promise<void> {
  const { broker, wakeUps } = options;
  const { logger } = broker;
  const failed = (error: unknown) => {
    logger.warn({ err: error }, "the plans were not brought to organizations; it is tried again");
    return 0;
  };
  await warnOfOtherPlans(options, logger).catch(failed);
  do {
    const organizations = await applyPlans(options).catch(failed);
    if (organizations > 0) {
      logger.info({ organizations }, "plans were brought to organizations");
      wakeUps.snapshot.wake();
    }
  } while (await pause(applyPlansIntervalMs, signal));
}
