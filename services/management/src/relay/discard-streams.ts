import { flagEventsStream, scheduleStream } from "@halyard/contracts";
import { deleteStream, snapshotPosition, streamPosition } from "@halyard/jetstream";
import type { Broker } from "./broker.ts";
import { LeadershipLostError } from "./failures.ts";
import type { StreamAhead } from "./find-unexplained.ts";
import type { Lease } from "./lease.ts";
import { recordRebuilding } from "./outbox-rows.ts";
import { recordDiscardedQueue } from "./streams-standing.ts";

/**
 * Discards what the streams hold of commits that the database has lost. The queue and the log are deleted;
 * the log is then filled from the outbox, dispatchers read it from its beginning and schedulers send
 * changes again. The snapshot is rebuilt from the tables under a new epoch.
 *
 * The snapshot and the log are the evidence, so they follow the queue: if this process dies in between,
 * the next leader detects the same and repeats it.
 */
export async function discardStreams(
  ahead: StreamAhead,
  { lease, broker, isLeading }: { lease: Lease; broker: Broker; isLeading: () => boolean },
): Promise<void> {
  const { logger, manager } = broker;
  logger.warn(
    { stream: ahead },
    "the database is older than the streams, as after a restore; rebuilding the streams from it",
  );
  const queue = await streamPosition(manager, scheduleStream.name);
  if (queue !== undefined)
    await lease.recordAsLeader((tx) => recordDiscardedQueue(tx, queue.createdAt));
  for (const { name } of [scheduleStream, flagEventsStream]) {
    if (!isLeading()) throw new LeadershipLostError("the lease ended before a stream was deleted");
    await deleteStream(manager, name);
  }
  const snapshot = await snapshotPosition(manager);
  if (snapshot !== undefined) await lease.recordAsLeader((tx) => recordRebuilding(tx, snapshot));
}
