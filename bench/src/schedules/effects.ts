import { flagEventsStream } from "@halyard/contracts";
import { connectNats } from "@halyard/jetstream";
import { jetstreamManager } from "@nats-io/jetstream";
import { pino } from "pino";
import type { Bench } from "../benchmark.ts";
import { until } from "../until.ts";
import type { SchedulingSystem } from "./scheduling-system.ts";

/** Counts history entries and events. Each change must leave one of both. */
export type Effects = { scheduledEntries: number; events: number };

export async function openEffects(
  bench: Bench,
  { nats, admin }: SchedulingSystem,
): Promise<() => Promise<Effects>> {
  const logger = pino({ level: "silent" });
  const connection = await connectNats({ nats: { url: nats.url }, name: "bench", logger });
  bench.afterwards(() => connection.close());
  const manager = await jetstreamManager(connection, { checkAPI: false });
  return async () => {
    // An edge may receive the snapshot entry before the event is in `FLAG_EVENTS`.
    await until("the relay has published everything", async () => {
      const unsent = await admin`select from management.outbox where sent_at is null limit 1`;
      return unsent.count === 0;
    });
    const [row] = await admin<[{ entries: number }]>`
      select count(*)::int as entries from management.history where change_type = 'scheduled'`;
    const { state } = await manager.streams.info(flagEventsStream.name);
    return { scheduledEntries: row.entries, events: state.messages };
  };
}
