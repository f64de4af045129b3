import type { PlanLimits } from "@halyard/contracts";
import { snapshotPosition } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Broker } from "./broker.ts";
import { forgetSentAfter, recordedStream, settleOvertaken } from "./outbox-rows.ts";
import { rebuildSnapshot } from "./rebuild-snapshot.ts";

export type SnapshotOptions = {
  plans: Readonly<Record<string, PlanLimits>>;
  newEpoch: () => string;
  isLeading: () => boolean;
};

/**
 * Brings the outbox and the snapshot to agree before anything is published. A snapshot that is not
 * there, not complete, or not the one that we wrote is written anew from the tables. One that lost
 * its newest entries (the broker died before its disk had them) gets them again from the outbox.
 * What it may hold more than is recorded does no harm: of each entry only the newest value is unsent
 * from here on, and sending that again changes nothing.
 *
 * Answers the snapshot's last sequence, behind which the next entry goes.
 */
export async function synchroniseSnapshot(
  sql: Sql,
  broker: Broker,
  options: SnapshotOptions,
): Promise<number> {
  const position = await snapshotPosition(broker.manager);
  const recorded = await recordedStream(sql, "snapshot");
  const intact =
    position?.isComplete === true &&
    recorded?.createdAt === position.createdAt &&
    // The sequence after the base is that of the entry `complete`.
    position.lastSequence > recorded.baseSequence;
  if (!intact) return rebuildSnapshot(sql, broker, options);

  const lost = await forgetSentAfter(sql, "snapshot", position.lastSequence);
  if (lost > 0)
    broker.logger.warn({ entries: lost }, "the snapshot lost entries; sending them again");
  await settleOvertaken(sql);
  return position.lastSequence;
}
