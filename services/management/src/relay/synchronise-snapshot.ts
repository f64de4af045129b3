import type { PlanLimits } from "@halyard/contracts";
import { establishLeases, type StreamPosition, snapshotPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Broker } from "./broker.ts";
import { StreamMovedError } from "./failures.ts";
import type { Lease } from "./lease.ts";
import { recordedStream, settleOvertaken } from "./outbox-rows.ts";
import { rebuildSnapshot } from "./rebuild-snapshot.ts";

export type SnapshotOptions = {
  plans: Readonly<Record<string, PlanLimits>>;
  newEpoch: () => string;
  isLeading: () => boolean;
};

/**
 * Brings the outbox and the snapshot to agree before anything is published. A snapshot that is not
 * there, not complete, not the one that we wrote, or that lost its newest entries (the broker died
 * before its disk had them) is written anew from the tables. Entries that were
 * published without being recorded do no harm: of each entry only the newest value is unsent from here on,
 * and sending that again changes nothing.
 *
 * Answers where the snapshot stands; the next entry goes behind its last sequence.
 */
export async function synchroniseSnapshot(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  options: SnapshotOptions,
): Promise<StreamPosition> {
  const position = await snapshotPosition(broker.manager);
  const recorded = await recordedStream(sql, "snapshot");
  const intact =
    position?.isComplete === true &&
    recorded?.createdAt === position.createdAt &&
    // The sequence after the base is that of the entry `complete`.
    position.lastSequence > recorded.baseSequence &&
    position.lastSequence >= recorded.lastSequence;
  // No snapshot of this database was ever complete, so no edge has streams.
  if (recorded === undefined) await establishLeases(broker);
  if (!intact) return rebuildSnapshot(sql, lease, broker, options);
  if (position.lastSequence > recorded.lastSequence)
    throw new StreamMovedError("the snapshot grew after it was compared with the outbox");

  await lease.recordAsLeader(settleOvertaken);
  return position;
}
