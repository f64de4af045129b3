import type { EntrySigner, KeySignatures } from "@halyard/api-keys";
import {
  flagEventsStream,
  type PlanLimits,
  type SnapshotRevision,
  snapshotBucket,
} from "@halyard/contracts";
import { type StreamPosition, snapshotPosition, streamPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import { applyPlans, applyPlansEveryMs, warnOfOtherPlans } from "./apply-plans.ts";
import type { Broker } from "./broker.ts";
import { discardStreams } from "./discard-streams.ts";
import { LeadershipLostError, StreamMovedError } from "./failures.ts";
import { findUnexplained } from "./find-unexplained.ts";
import { createLane, type Lane } from "./lane.ts";
import { type Lease, renewEveryMs } from "./lease.ts";
import { notifyPublished, readBacklog } from "./outbox-rows.ts";
import { confirmStreams } from "./streams-standing.ts";
import { synchroniseLog } from "./synchronise-log.ts";
import { synchroniseSnapshot } from "./synchronise-snapshot.ts";
import type { WakeUp } from "./wake-up.ts";
import { type LogSize, watchLogSize } from "./watch-log-size.ts";

/**
 * One round of leading: detect a database that is older than the streams, bring outbox and streams to
 * agree, then publish until something is out of the ordinary. The tasks of a round end together; no task of one round meets one of the next.
 */
export type RoundOptions = {
  sql: Sql;
  broker: Broker;
  lease: Lease;
  publications: Publications;
  plans: Readonly<Record<string, PlanLimits>>;
  /** Signs the entries of API keys; undefined: they are not signed. */
  signer: EntrySigner | undefined;
  /** Verifies the entries of API keys that this leader finds in the snapshot. */
  signatures: KeySignatures;
  now: () => Date;
  newId: () => string;
  newEpoch: () => string;
  wakeUp: WakeUp;
  /** Called when the snapshot is in order and publishing begins. */
  onLeading: () => void;
  /** Called when the database is older than the streams. */
  onDatabaseBehind: () => void;
  onPublished: (messages: number) => void;
  onBacklog: (backlog: { rows: number; oldestSeconds: number }) => void;
  onLogSize: (size: LogSize) => void;
};

/** What is found without a hint, when a notification was lost or its sender died. */
const lookAnywayAfterMs = 250;

/** Ends by an error, or quietly when `stop` is aborted. The lease must be held. */
export async function leadOneRound(options: RoundOptions, stop: AbortSignal): Promise<void> {
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

async function keepLease({ lease, wakeUp }: RoundOptions, signal: AbortSignal): Promise<void> {
  for (;;) {
    await wakeUp.sleep(renewEveryMs, signal);
    if (signal.aborted) return;
    if (!(await lease.renew())) throw new LeadershipLostError("the lease has ended");
  }
}

/** The streams as this round knows them, once it has brought them to agree. */
type Standing = { log?: StreamPosition; snapshot?: StreamPosition };
type Lanes = { events?: Lane; snapshot?: Lane };

/**
 * The two streams do not wait for each other: while a log of millions is refilled, the snapshot, by
 * which flags and keys take effect, goes on.
 */
async function publish(options: RoundOptions, signal: AbortSignal): Promise<void> {
  const { sql, broker, publications, lease } = options;
  const standing: Standing = {};
  const lanes: Lanes = {};
  await discardStreamsAhead(options, signal);
  await together(signal, (ended) => {
    const isLeading = () => lease.isHeld() && !ended.aborted;
    const shared = { sql, lease, broker, publications, isLeading };
    const carryEntries = async () => {
      const synchronised = await synchroniseSnapshot(sql, lease, broker, { ...options, isLeading });
      standing.snapshot = synchronised;
      const { lastSequence, epoch } = synchronised;
      await announce(options, { epoch, revision: lastSequence });
      options.onLeading();
      const { signer } = options;
      lanes.snapshot = createLane({ ...shared, stream: "snapshot", epoch, signer, lastSequence });
      await runLane(lanes.snapshot, options, ended, (published) => {
        // Looked at while the lane is idle, so that its own messages are not taken for another client's.
        if ((standing.snapshot?.lastSequence ?? 0) > published)
          throw new StreamMovedError("another client has written to the snapshot");
      });
    };
    const carryEvents = async () => {
      standing.log = await synchroniseLog(sql, lease, broker, publications);
      const { lastSequence } = standing.log;
      lanes.events = createLane({ ...shared, stream: "events", lastSequence });
      await runLane(lanes.events, options, ended);
    };
    return [
      carryEntries(),
      carryEvents(),
      watchStreams(standing, options, ended),
      confirmRegularly(lanes, options, ended),
      measureBacklog(options, ended),
      watchLogSize(options, ended),
      applyPlansRegularly(options, ended),
    ];
  });
}

/** Notifies all replicas of the snapshot's revision, so that they know which edges are current. */
async function announce(
  { sql, publications }: RoundOptions,
  revision: SnapshotRevision,
): Promise<void> {
  publications.confirm([], revision);
  await notifyPublished(sql, [], revision);
}

/** Discards the streams if the database is older than they are. */
async function discardStreamsAhead(options: RoundOptions, signal: AbortSignal): Promise<void> {
  const { sql, lease, broker, signatures } = options;
  const ahead = await findUnexplained(sql, lease, broker, signatures);
  if (ahead === undefined) return;
  options.onDatabaseBehind();
  const isLeading = () => lease.isHeld() && !signal.aborted;
  await discardStreams(ahead, { lease, broker, isLeading });
}

async function runLane(
  lane: Lane,
  options: RoundOptions,
  signal: AbortSignal,
  whenIdle: (lastSequence: number) => void = () => undefined,
): Promise<void> {
  while (!signal.aborted) {
    // Asked for before draining: a hint that comes meanwhile is not lost.
    const hint = options.wakeUp.waitAtMost(lookAnywayAfterMs, signal);
    options.onPublished(await lane.drain());
    whenIdle(lane.lastSequence());
    await hint;
  }
}

/** Notices a stream that was deleted, made anew or cut short while nothing is being published. */
async function watchStreams(
  standing: Standing,
  { broker: { manager }, wakeUp }: RoundOptions,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await wakeUp.sleep(renewEveryMs, signal);
    if (signal.aborted) return;
    // What is known is taken before looking: a stream that is being made meanwhile is left alone.
    const known = { ...standing };
    if (known.log !== undefined) {
      const log = await streamPosition(manager, flagEventsStream.name);
      standing.log = checkContinues(flagEventsStream.name, known.log, log);
    }
    if (known.snapshot !== undefined) {
      const snapshot = await snapshotPosition(manager);
      standing.snapshot = checkContinues(snapshotBucket.bucket, known.snapshot, snapshot);
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
  lanes: Lanes,
  { lease, wakeUp }: RoundOptions,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    // Read before the database, because the lanes keep recording.
    const recorded = {
      events: lanes.events?.lastSequence() ?? 0,
      snapshot: lanes.snapshot?.lastSequence() ?? 0,
    };
    await lease.recordAsLeader((tx) => confirmStreams(tx, recorded));
    await wakeUp.sleep(renewEveryMs, signal);
  }
}

/** Above this it matters only that it is much; counting further would cost more than it tells. */
const backlogCountedUpTo = 10_000;

async function measureBacklog(options: RoundOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    options.onBacklog(await readBacklog(options.sql, backlogCountedUpTo));
    await options.wakeUp.sleep(renewEveryMs, signal);
  }
}

/** What fails here is tried again at its time: an organization's limits may wait, all else may not. */
async function applyPlansRegularly(options: RoundOptions, signal: AbortSignal): Promise<void> {
  const { broker, wakeUp } = options;
  const { logger } = broker;
  const failed = (error: unknown) => {
    logger.warn({ err: error }, "the plans were not brought to organizations; it is tried again");
    return 0;
  };
  await warnOfOtherPlans(options, logger).catch(failed);
  while (!signal.aborted) {
    const organizations = await applyPlans(options).catch(failed);
    if (organizations > 0) {
      logger.info({ organizations }, "plans were brought to organizations");
      wakeUp.wake();
    }
    await wakeUp.sleep(applyPlansEveryMs, signal);
  }
}
