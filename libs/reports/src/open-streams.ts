import { checkEdgeStreams, type EdgeStreams, edgeStreams } from "@halyard/contracts";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { createReporters, type FollowedReports, followReports } from "./follow-reports.ts";

/** The open streams of organizations, as edges report them. The counts of a silent edge apply until it is forgotten. */
export type OpenStreams = {
  /** Returns the number of an organization's streams on all known edges. */
  of(organizationId: string): number;
  /** Returns the number of streams of all organizations on all known edges. */
  total(): number;
  edges(): number;
  /** Returns the reason if it ignores the report. */
  take(report: EdgeStreams): string | undefined;
  /** Counts silence, and returns the ids of the edges that were forgotten. */
  tick(): string[];
  /** Records that reports were lost. */
  interrupted(): void;
};

/** Bounds the memory if an edge is compromised. A count takes about 100 bytes. */
const defaultBounds = { edges: 1_000, counts: 1_000_000 };

type Counts = Map<string, number>;

type Edge = {
  counts: Counts;
  /** The parts received so far of a complete report. */
  received: { parts: number; counts: Counts };
};

/** `except` is the id of this process's own edge, whose reports are ignored. */
export function createOpenStreams({
  except,
  bounds = defaultBounds,
}: {
  except?: string;
  bounds?: typeof defaultBounds;
} = {}): OpenStreams {
  const edges = createReporters<Edge>({
    silentAfterTicks: edgeStreams.silentAfterMs / edgeStreams.intervalMs,
    maxReporters: bounds.edges,
  });

  function size(): number {
    let sum = 0;
    for (const { counts, received } of edges.states()) sum += counts.size + received.counts.size;
    return sum;
  }

  return {
    of(organizationId) {
      let sum = 0;
      for (const { counts } of edges.states()) sum += counts.get(organizationId) ?? 0;
      return sum;
    },
    total() {
      let sum = 0;
      for (const { counts } of edges.states()) for (const count of counts.values()) sum += count;
      return sum;
    },
    edges: () => [...edges.states()].length,
    take(report) {
      if (report.edge === except) return undefined;
      if (report.state === "stopped") {
        edges.delete(report.edge);
        return undefined;
      }
      const streams = Object.entries(report.streams);
      if (size() + streams.length > bounds.counts) return "the edges report too many organizations";
      const edge = edges.get(report.edge) ?? newEdge();
      if (!edges.set(report.edge, edge)) return "too many edges report";
      if (report.state === "changed") apply(streams, edge.counts);
      else takePart(report, streams, edge);
      return undefined;
    },
    tick: edges.tick,
    interrupted: edges.interrupted,
  };
}

const nothingReceived = (): Edge["received"] => ({ parts: 0, counts: new Map() });
const newEdge = (): Edge => ({ counts: new Map(), received: nothingReceived() });

function apply(streams: readonly [string, number][], counts: Counts): void {
  for (const [organizationId, count] of streams)
    if (count === 0) counts.delete(organizationId);
    else counts.set(organizationId, count);
}

/** The last part of a complete report replaces the counts, unless a part was lost. */
function takePart(
  { part, parts }: { part: number; parts: number },
  streams: readonly [string, number][],
  edge: Edge,
): void {
  if (part === 1) edge.received = nothingReceived();
  const { received } = edge;
  if (received.parts !== part - 1) return;
  received.parts = part;
  apply(streams, received.counts);
  if (part !== parts) return;
  edge.counts = received.counts;
  edge.received = nothingReceived();
}

/** Follows the reports of edges until it is stopped. `onTick` is called at every interval at which NATS is connected. */
export function followOpenStreams(options: {
  connection: NatsConnection;
  streams: OpenStreams;
  intervalMs?: number;
  onTick?: () => void;
  logger: Logger;
}): FollowedReports {
  const { connection, streams, intervalMs = edgeStreams.intervalMs, logger } = options;
  return followReports({
    ...{ connection, subject: edgeStreams.subject, maxBytes: edgeStreams.maxBytes, logger },
    ...{ check: checkEdgeStreams, onReport: streams.take, onLoss: streams.interrupted },
    tickMs: intervalMs,
    onTick() {
      for (const edge of streams.tick())
        logger.warn({ edge }, "an edge has stopped reporting; its streams no longer count");
      options.onTick?.();
    },
  });
}
