import { type EdgeStreams, edgeStreams } from "@halyard/contracts";
import {
  createOpenStreams,
  type FollowedReports,
  followOpenStreams,
  type OpenStreams,
} from "@halyard/reports";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import { Counter, Gauge, type Registry } from "prom-client";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import { type Clock, reportStreams } from "./report-streams.ts";
import { type Counts, createStreamSlots, type StreamSlots } from "./stream-slots.ts";

type OpenSlots = StreamSlots & {
  /** Reports that the streams are closed. Must be called after that and before the connection closes. */
  stop(): Promise<void>;
};

const processClock: Clock = {
  monotonicMs: () => performance.now(),
  after(delayMs, work) {
    const timer = setTimeout(work, delayMs).unref();
    return () => clearTimeout(timer);
  },
};

/**
 * The slots of an edge process: limits from the snapshot, counts of the other edges from NATS. Without NATS, the last
 * known counts apply.
 */
export function openSlots(options: {
  connection: Promise<NatsConnection>;
  /** Identifies this process. */
  edge: string;
  holder: Pick<SnapshotHolder, "snapshot">;
  registry: Registry;
  logger: Logger;
  intervalMs?: number;
}): OpenSlots {
  const { edge, holder, registry, logger, intervalMs = edgeStreams.intervalMs } = options;
  const open: Counts = new Map();
  const others = createOpenStreams({ except: edge });
  let nats: { connection: NatsConnection; followed: FollowedReports } | undefined;
  let isStopped = false;
  let knowsOthers = false;

  function send(report: EdgeStreams): void {
    if (nats?.followed.isConnected() === true)
      nats.connection.publish(edgeStreams.subject, JSON.stringify(report));
  }

  const reports = reportStreams({ edge, open, send, clock: processClock });
  const rejected = registerMetrics(registry, others);

  async function follow(): Promise<void> {
    const connection = await options.connection;
    if (isStopped) return;
    function onTick(): void {
      knowsOthers = true;
      reports.all();
    }
    const followed = followOpenStreams({ connection, streams: others, intervalMs, onTick, logger });
    nats = { connection, followed };
  }

  void follow();
  return {
    ...createStreamSlots({
      ...{ open, others, onChanged: reports.changed, onRejected: () => rejected.inc() },
      limitOf: (organizationId) =>
        holder.snapshot?.limits.get(organizationId)?.sse_connections ?? null,
    }),
    knowsOthers: () => knowsOthers,
    async stop() {
      isStopped = true;
      reports.stop();
      nats?.followed.stop();
      // A stream that closes later must not report this edge again.
      nats = undefined;
    },
  };
}

/** Returns the counter of rejected streams. */
function registerMetrics(
  registry: Registry,
  others: Pick<OpenStreams, "edges" | "total">,
): Counter {
  const registers = [registry];
  new Gauge({
    name: "halyard_stream_slots_other_edges",
    help: "Other edges whose open streams this edge counts.",
    registers,
    collect() {
      this.set(others.edges());
    },
  });
  new Gauge({
    name: "halyard_stream_slots_other_streams",
    help: "Open streams on the other edges, as they reported them.",
    registers,
    collect() {
      this.set(others.total());
    },
  });
  return new Counter({
    name: "halyard_stream_slot_requests_rejected_total",
    help: "Streams that were rejected because the plan's limit was reached.",
    registers,
  });
}
