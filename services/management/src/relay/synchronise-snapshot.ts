import type { EntrySigner } from "@halyard/api-keys";
import type { PlanLimits } from "@halyard/contracts";
import {
  establishLeases,
  findComplete,
  purgeComplete,
  type StreamPosition,
  snapshotPosition,
} from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import { StreamMovedError } from "./failures.ts";
import type { Lease } from "./lease.ts";
import { recordedStream } from "./outbox-rows.ts";
import { rebuildSnapshot } from "./rebuild-snapshot.ts";
import { isOwnComplete } from "./signed-payload.ts";

export type SnapshotOptions = {
  plans: Readonly<Record<string, PlanLimits>>;
  signer: EntrySigner | undefined;
  publications: Publications;
  newEpoch: () => string;
  isLeading: () => boolean;
};

export type SnapshotStanding = StreamPosition & { epoch: string };

/**
 * Brings the outbox and the snapshot to agree before anything is published. A snapshot is rebuilt from
 * the tables if it is missing, incomplete, not recorded, if it lost its newest entries because the
 * broker died before its disk had them, or if `complete` or entries of API keys are not signed by this leader's key. Entries
 * that were published without being recorded do no harm: no older value of them is unsent any more, and
 * publishing the same value again changes nothing.
 *
 * A bucket that lost its end may also lack entries that the lost ones had replaced. It must not be read
 * until it is rebuilt, so its entry `complete` is removed first.
 *
 * Returns the position of the stream and its epoch; the next entry follows the last sequence.
 */
export async function synchroniseSnapshot(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  options: SnapshotOptions,
): Promise<SnapshotStanding> {
  const position = await snapshotPosition(broker.manager);
  const recorded = await recordedStream(sql, "snapshot");
  // No snapshot of this database was ever complete, so no edge has streams.
  if (recorded === undefined) await establishLeases(broker);
  const isRecorded = position?.isComplete === true && recorded?.createdAt === position.createdAt;
  if (!isRecorded) return rebuildSnapshot(sql, lease, broker, options);
  if (position.lastSequence < recorded.lastSequence) {
    await purgeComplete(broker.manager, position.lastSequence);
    return rebuildSnapshot(sql, lease, broker, options);
  }
  // The sequence after the base is that of the entry `complete`.
  if (position.lastSequence <= recorded.baseSequence)
    return rebuildSnapshot(sql, lease, broker, options);
  if (position.lastSequence > recorded.lastSequence)
    throw new StreamMovedError("the snapshot grew after it was compared with the outbox");

  const found = await findComplete(broker.manager);
  const isOwn = found !== undefined && isOwnComplete(options.signer, found);
  // A leader of release 0.1.0 does not sign, and records only the last sequence.
  const areKeysSigned =
    options.signer === undefined || recorded.signedSequence === recorded.lastSequence;
  if (!isOwn || !areKeysSigned) return rebuildSnapshot(sql, lease, broker, options);
  return { ...position, epoch: found.complete.epoch };
}
