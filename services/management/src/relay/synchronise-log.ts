import { flagEventsStream } from "@halyard/contracts";
import { ensureFlagEvents, readMessageIds } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import type { Lease } from "./lease.ts";
import { forgetEventsAfter, recordedStream, recordFound, recordStream } from "./outbox-rows.ts";

/**
 * Brings the outbox and the log of events to agree before anything is published. The log may hold
 * more than is recorded (the acknowledgement, or the process that got it, was lost) or less (it was
 * deleted, or the broker died before its disk had everything). What it holds more is recorded, what
 * it lost becomes unsent again; so every event is in the log once.
 *
 * Answers the log's last sequence, behind which the next message goes.
 */
export async function synchroniseLog(
  sql: Sql,
  lease: Lease,
  broker: Broker,
  publications: Publications,
): Promise<number> {
  const position = await ensureFlagEvents(broker.manager, broker.replicas);
  const recorded = await recordedStream(sql, "events");
  const sameStream = recorded?.createdAt === position.createdAt;
  const known = sameStream ? Math.min(recorded.lastSequence, position.lastSequence) : 0;

  const lost = await lease.recordAsLeader((tx) => forgetEventsAfter(tx, known));
  if (lost > 0) broker.logger.warn({ events: lost }, "the log of events lost some; refilling it");

  const found =
    position.lastSequence > known
      ? await readMessageIds({
          connection: broker.connection,
          manager: broker.manager,
          stream: flagEventsStream.name,
          fromSequence: known + 1,
        })
      : new Map<string, number>();

  const lastSequence = Math.max(position.lastSequence, ...found.values());
  const { createdAt } = position;
  const confirmed = await lease.recordAsLeader(async (tx) => {
    await recordStream(tx, "events", { createdAt, lastSequence, baseSequence: 0 });
    return recordFound(tx, found);
  });
  publications.confirm(confirmed);
  return lastSequence;
}
