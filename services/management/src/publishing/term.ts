import type { EntrySigner, KeySignatures } from "@halyard/api-keys";
import { flagEventsStream, type SnapshotRevision, snapshotBucket } from "@halyard/contracts";
import {
  type SignMessage,
  type StreamPosition,
  streamPosition,
  type VerifyMessage,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import { snapshotPosition } from "@halyard/snapshot";
import { pause, type WakeUp } from "@halyard/timing";
import type { Counter, Gauge } from "prom-client";
import type { Publications } from "../outbox/effects.ts";
import { notifyPublished } from "../outbox/notifications.ts";
import { eventQueueOf, readBacklog, type StreamName } from "../outbox/unsent-rows.ts";
import { applyGroupSettings, type GroupSettings } from "../people/group-grants.ts";
import { type Plans, writePlans } from "../tenancy/plans.ts";
import { type Broker, StreamMovedError } from "./broker.ts";
import { type EventsSize, synchronizeEvents, watchEventsSize } from "./events.ts";
import { LeadershipLostError, type Lease, renewIntervalMs } from "./lease.ts";
import { publishPeople } from "./publish-people.ts";
import { confirmStreams } from "./records.ts";
import { discardStreams, findUnexplained } from "./restored-database.ts";
import { synchronizeSnapshot } from "./snapshot.ts";
import { createStreamPublisher, type StreamPublisher } from "./stream-publisher.ts";
import { createUnreadEvents, type UnreadEvents } from "./unread-events.ts";

/**
 * Options of a term of leadership. A term first detects a database that is older than the streams, then synchronizes
 * the outbox and the streams. It then publishes until an error or an unexpected change of a stream. The tasks of a term
 * end together, so they never overlap with those of the next term.
 */
export type TermOptions = GroupSettings & {
  sql: Sql;
  broker: Broker;
  lease: Lease;
  publications: Publications;
  plans: Plans;
  /** Signs the entries of API keys. If undefined, they are not signed. */
  signer: EntrySigner | undefined;
  /** Verifies the entries of API keys that this leader finds in the snapshot. */
  signatures: KeySignatures;
  /** Signs the events. */
  sign: SignMessage;
  /** Verifies the events that this leader finds in the event log. */
  verify: VerifyMessage;
  now: () => Date;
  newId: () => string;
  newEpoch: () => string;
  wakeUps: Record<StreamName | "people", WakeUp>;
  /** Called when the snapshot is synchronized and publishing begins. */
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
  eventsWaitingOrganizations: Gauge;
};

/** Polling interval, for rows whose notification was lost or whose writer died. */
const pollIntervalMs = 250;

/** Leads until an error or until `stop` is aborted. The caller holds the lease. */
export async function leadOneTerm(options: TermOptions, stop: AbortSignal): Promise<void> {
  await together(stop, (signal) => [keepLease(options, signal), publish(options, signal)]);
}

/** Runs tasks until one of them ends, then aborts the others and waits for them. */
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

/** The positions of the streams after their synchronization in this term. */
type StreamPositions = { events?: StreamPosition; snapshot?: StreamPosition };
type StreamPublishers = { events?: StreamPublisher; snapshot?: StreamPublisher };

/**
 * Synchronizes and publishes both streams. They do not wait for each other: flags and keys keep taking effect while an
 * event log of millions is filled.
 */
async function publish(options: TermOptions, signal: AbortSignal): Promise<void> {
  const { sql, broker, publications, lease, signer, sign, wakeUps, metrics } = options;
  const { published } = metrics;
  const positions: StreamPositions = {};
  const publishers: StreamPublishers = {};
  await discardStreamsAhead(options, signal);
  // Before the synchronization, so that every complete snapshot contains them.
  await lease.recordAsLeader((tx) => writePlans(tx, { ...options, logger: broker.logger }));
  await applyGroupSettings(options);
  const unread = createUnreadEvents(broker.flagEventsMaxBytes ?? flagEventsStream.defaultMaxBytes);
  await together(signal, (ended) => {
    const isLeading = () => lease.isHeld() && !ended.aborted;
    const shared = { sql, lease, broker, publications, isLeading };
    const publishEntries = async () => {
      const synchronized = await synchronizeSnapshot(sql, lease, broker, { ...options, isLeading });
      positions.snapshot = synchronized;
      const { lastSequence, epoch } = synchronized;
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
        // Checked only while the publisher is idle. Otherwise its own messages could appear to come from another
        // client.
        if ((positions.snapshot?.lastSequence ?? 0) > publisher.lastSequence())
          throw new StreamMovedError("another client has written to the snapshot");
      };
      await runPublisher(publisher, { wakeUp: wakeUps.snapshot, published, whenIdle }, ended);
    };
    const publishEvents = async () => {
      positions.events = await synchronizeEvents(sql, lease, broker);
      const { lastSequence } = positions.events;
      const publisher = createStreamPublisher({
        ...shared,
        stream: "events",
        sign,
        lastSequence,
        unread,
      });
      publishers.events = publisher;
      await runPublisher(publisher, { wakeUp: wakeUps.events, published }, ended);
    };
    return [
      publishEntries(),
      publishEvents(),
      publishPeople({ ...options, isLeading, wakeUp: wakeUps.people }, ended),
      watchStreams(positions, options, ended),
      confirmRegularly(publishers, options, ended),
      measureBacklog(options, unread, ended),
      watchEventsSize(
        { broker, unread, onEventsSize: (size) => showEventsSize(size, metrics) },
        ended,
      ),
    ];
  });
}

function showEventsSize(
  { bytes, maxBytes, unread, waitingOrganizations }: EventsSize,
  metrics: RelayMetrics,
): void {
  metrics.eventsBytes.set(bytes);
  metrics.eventsMaxBytes.set(maxBytes ?? 0);
  metrics.eventsUnread.set(unread);
  metrics.eventsWaitingOrganizations.set(waitingOrganizations);
}

/** Notifies all replicas of the revision of the snapshot, so that they can determine which edges are current. */
async function publishRevision(
  { sql, publications }: TermOptions,
  revision: SnapshotRevision,
): Promise<void> {
  publications.confirm([], revision);
  await notifyPublished(sql, [], revision);
}

/** Discards the streams if the database is older than they are. */
async function discardStreamsAhead(options: TermOptions, signal: AbortSignal): Promise<void> {
  const { sql, lease, broker } = options;
  const ahead = await findUnexplained(sql, lease, broker, options);
  if (ahead === undefined) return;
  options.metrics.databaseBehind.inc();
  const isLeading = () => lease.isHeld() && !signal.aborted;
  await discardStreams(ahead, { lease, broker, isLeading });
}

/** Number of messages in a batch at which several writes are likely in progress, so that more follow. */
const severalWrites = 4;
/**
 * Pause after such a batch, so that the next one contains more rows. Most of the cost of a batch in PostgreSQL does not
 * depend on its size. A write waits for it only if it follows such a batch within this time.
 */
const gatherMs = 4;

/** Publishes when the publisher is woken, and regularly in case a notification was lost. */
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

/** Detects a stream that was deleted, recreated or truncated while nothing is being published. */
async function watchStreams(
  positions: StreamPositions,
  { broker: { manager } }: TermOptions,
  signal: AbortSignal,
): Promise<void> {
  while (await pause(renewIntervalMs, signal)) {
    // The positions are copied before the streams are read. A stream that is synchronized meanwhile is not checked.
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

/** Ends the term if the database has lost a recorded sequence, even if no connection was lost. */
async function confirmRegularly(
  publishers: StreamPublishers,
  { lease }: TermOptions,
  signal: AbortSignal,
): Promise<void> {
  do {
    // Read before the database, because the publishers keep recording.
    const recorded = {
      events: publishers.events?.lastSequence() ?? 0,
      snapshot: publishers.snapshot?.lastSequence() ?? 0,
    };
    await lease.recordAsLeader((tx) => confirmStreams(tx, recorded));
  } while (await pause(renewIntervalMs, signal));
}

/** Maximum backlog that is counted. The exact size of a larger one is not worth the cost of counting. */
const maxCountedBacklog = 10_000;

/** Measures the backlog. Events that wait for webhook dispatchers are no backlog of the relay. */
async function measureBacklog(
  { sql, metrics }: TermOptions,
  unread: UnreadEvents,
  signal: AbortSignal,
): Promise<void> {
  do {
    const { rows, oldestSeconds } = await readBacklog(sql, {
      streams: ["events", "snapshot"],
      except: unread.waiting().map(eventQueueOf),
      countUpTo: maxCountedBacklog,
    });
    metrics.unsentRows.set(rows);
    metrics.oldestUnsentSeconds.set(oldestSeconds);
  } while (await pause(renewIntervalMs, signal));
}
