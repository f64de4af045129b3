import { flagEventsStream } from "@halyard/contracts";
import { ensureFlagEvents, readMessageIds } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/publications.ts";
import type { Broker } from "./broker.ts";
import { forgetSentAfter, recordedStream, recordFound, recordStream } from "./outbox-rows.ts";

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
  broker: Broker,
  publications: Publications,
): Promise<number> {
  const position = await ensureFlagEvents(broker.manager, broker.replicas);
  const recorded = await recordedStream(sql, "events");
  const sameStream = recorded?.createdAt === position.createdAt;
  const known = sameStream ? Math.min(recorded.lastSequence, position.lastSequence) : 0;

  const lost = await forgetSentAfter(sql, "events", known);
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
  publications.confirm(await recordFound(sql, found));

  const lastSequence = Math.max(position.lastSequence, ...found.values());
  await recordStream(sql, "events", {
    createdAt: position.createdAt,
    lastSequence,
    baseSequence: 0,
  });
  return lastSequence;
}
