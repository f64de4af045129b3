import { completeKey, entryKey, snapshotBucket } from "@halyard/contracts";
import { type OutgoingMessage, publishFenced, recreateSnapshot } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Broker } from "./broker.ts";
import { LeadershipLostError, StreamMovedError } from "./failures.ts";
import { readFullState } from "./full-state.ts";
import type { Lease } from "./lease.ts";
import { recordStream, recordSuperseded } from "./outbox-rows.ts";
import type { SnapshotOptions } from "./synchronise-snapshot.ts";

/** How many entries are on their way at once; the broker's answers come back in one go. */
const batchSize = 1_000;

/**
 * Writes the whole snapshot anew: an empty bucket, every entry as the tables have it at one moment,
 * and last the entry `complete` with a new epoch. Readers keep what they have until they see it.
 *
 * Rows of the outbox that were committed before that moment are settled by it; if they were sent
 * afterwards, an older value could overtake a newer one. What commits later is sent as usual.
 *
 * Answers the snapshot's last sequence.
 */
export async function rebuildSnapshot(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  options: SnapshotOptions,
): Promise<number> {
  const state = await readFullState(sql, options.plans);
  const epoch = options.newEpoch();
  broker.logger.info({ epoch, entries: state.entries.length }, "writing the snapshot anew");

  // The longest wait so far is over; nobody but the leader may delete what is there.
  if (!options.isLeading()) throw new LeadershipLostError("the lease ended before a full write");
  const { createdAt, lastSequence: start } = await recreateSnapshot(
    broker.manager,
    broker.replicas,
  );
  let lastSequence = start;
  for (let from = 0; from < state.entries.length; from += batchSize) {
    if (!options.isLeading()) throw new LeadershipLostError("the lease ended during a full write");
    const batch = state.entries.slice(from, from + batchSize).map(({ address, value }) => ({
      subject: snapshotBucket.subjectPrefix + entryKey(address),
      payload: JSON.stringify(value),
    }));
    lastSequence = await publishAll(broker, batch, lastSequence);
  }

  // Recorded before `complete`: if we die in between, the next leader starts over.
  await lease.recordAsLeader(async (tx) => {
    await recordSuperseded(tx, state.supersededRows);
    await recordStream(tx, "snapshot", { createdAt, lastSequence, baseSequence: lastSequence });
  });
  const complete = {
    subject: snapshotBucket.subjectPrefix + completeKey,
    payload: JSON.stringify({ epoch }),
  };
  return publishAll(broker, [complete], lastSequence);
}

async function publishAll(
  broker: Broker,
  messages: readonly OutgoingMessage[],
  lastSequence: number,
): Promise<number> {
  const result = await publishFenced(broker.client, messages, lastSequence);
  if (result.failure !== undefined)
    throw new StreamMovedError("the snapshot could not be written", { cause: result.failure });
  return lastSequence + messages.length;
}
