import { flagEventsStream, type PlanLimits, snapshotBucket } from "@halyard/contracts";
import { type StreamPosition, snapshotPosition, streamPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import { cleanUp, cleanUpEveryMs } from "./clean-up.ts";
import { LeadershipLostError, StreamMovedError } from "./failures.ts";
import { createLane, type Lane } from "./lane.ts";
import { type Lease, renewEveryMs } from "./lease.ts";
import { synchroniseLog } from "./synchronise-log.ts";
import { synchroniseSnapshot } from "./synchronise-snapshot.ts";
import type { WakeUp } from "./wake-up.ts";

/**
 * One round of leading: bring outbox and streams to agree, then publish until something is out of
 * the ordinary. The tasks of a round end together; no task of one round meets one of the next.
 */
export type RoundOptions = {
  sql: Sql;
  broker: Broker;
  lease: Lease;
  publications: Publications;
  plans: Readonly<Record<string, PlanLimits>>;
  newEpoch: () => string;
  wakeUp: WakeUp;
  /** Called when the streams are in order and publishing begins. */
  onLeading: () => void;
  onPublished: (messages: number) => void;
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

async function publish(options: RoundOptions, signal: AbortSignal): Promise<void> {
  const { sql, broker, publications, lease } = options;
  const isLeading = () => lease.isHeld() && !signal.aborted;
  const lastEvent = await synchroniseLog(sql, lease, broker, publications);
  const lastEntry = await synchroniseSnapshot(sql, lease, broker, { ...options, isLeading });
  const shared = { sql, lease, broker, publications, isLeading };
  const log = createLane({ ...shared, stream: "events", lastSequence: lastEvent });
  const entries = createLane({
    ...shared,
    stream: "snapshot",
    lastSequence: lastEntry,
  });
  options.onLeading();
  await together(signal, (ended) => [
    runLane(log, options, ended),
    runLane(entries, options, ended),
    watchStreams(options, ended),
    cleanUpRegularly(options, ended),
  ]);
}

async function runLane(lane: Lane, options: RoundOptions, signal: AbortSignal): Promise<void> {
  while (!signal.aborted) {
    // Asked for before draining: a hint that comes meanwhile is not lost.
    const hint = options.wakeUp.waitAtMost(lookAnywayAfterMs, signal);
    options.onPublished(await lane.drain());
    await hint;
  }
}

/** Notices a stream that was deleted, made anew or cut short while nothing is being published. */
async function watchStreams(
  { broker: { manager }, wakeUp }: RoundOptions,
  signal: AbortSignal,
): Promise<void> {
  const look = async () => ({
    log: await streamPosition(manager, flagEventsStream.name),
    snapshot: await snapshotPosition(manager),
  });
  let known = await look();
  for (;;) {
    await wakeUp.sleep(renewEveryMs, signal);
    if (signal.aborted) return;
    const now = await look();
    checkContinues(flagEventsStream.name, known.log, now.log);
    checkContinues(snapshotBucket.bucket, known.snapshot, now.snapshot);
    if (now.snapshot?.isComplete !== true)
      throw new StreamMovedError(`${snapshotBucket.bucket} is not complete`);
    known = now;
  }
}

function checkContinues(
  name: string,
  before: StreamPosition | undefined,
  after: StreamPosition | undefined,
): void {
  if (before === undefined || after?.createdAt !== before.createdAt)
    throw new StreamMovedError(`${name} was deleted`);
  if (after.lastSequence < before.lastSequence) throw new StreamMovedError(`${name} lost its end`);
}

async function cleanUpRegularly(
  { sql, broker, wakeUp }: RoundOptions,
  signal: AbortSignal,
): Promise<void> {
  for (;;) {
    await wakeUp.sleep(cleanUpEveryMs, signal);
    if (signal.aborted) return;
    await cleanUp(sql, broker);
  }
}
