import { createOpenStreams, followOpenStreams } from "@halyard/jetstream";
import { connect } from "@nats-io/transport-node";
import { pino } from "pino";
import type { Bench } from "../benchmark.ts";
import type { Nats } from "../system/backends.ts";

/** Returns the number of an organization's open streams, from the reports of the edges. */
export async function openSlotsHeld(
  bench: Bench,
  nats: Nats,
): Promise<(organizationId: string) => number> {
  const connection = await connect({ servers: nats.url });
  bench.afterwards(() => connection.close());
  const streams = createOpenStreams();
  followOpenStreams({ connection, streams, logger: pino({ level: "silent" }) });
  return streams.of;
}
