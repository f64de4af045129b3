import {
  checkEdgeReport,
  type EdgeReport,
  edgeReports,
  type SnapshotRevision,
} from "@halyard/contracts";
import { createReporters, type FollowedReports, followReports } from "@halyard/reports";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/** Tracks the live edges, which writes wait for, and the snapshot revision that each of them has applied. */
export type LiveEdges = {
  /** Returns the reason if it ignores the report. */
  take(report: EdgeReport): string | undefined;
  /** Records that the relay has published everything up to this revision. */
  published(revision: SnapshotRevision): void;
  /** Counts the silence of edges. Call it every `tickMs` while NATS is connected. */
  tick(): void;
  /**
   * Records that the connection to NATS, and with it reports, were lost. Known edges get the full time to report again.
   * Writes wait until new edges had enough time to report.
   */
  interrupted(): void;
  /** Resolves when every live edge has applied the revision. `ended` ends the wait early. */
  waitUntilApplied(revision: SnapshotRevision, ended: AbortSignal): Promise<void>;
  /** Number of edges that writes wait for. */
  count(): number;
};

export const tickMs = edgeReports.intervalMs;
/** Number of ticks after which every edge has reported. Before that, this process may not know all edges. */
const liveAfterTicks = 3;
/** Bounds the memory if a compromised edge reports under many ids. */
const maxEdges = 1_000;

type Edge = {
  applied: SnapshotRevision | undefined;
  /** The revision that the edge must reach before it counts as live. Undefined for a live edge. */
  liveFrom: SnapshotRevision | undefined;
};

type Waiter = { epoch: string; sequence: number; resolve: () => void };

export function createLiveEdges(): LiveEdges {
  const edges = createReporters<Edge>({
    silentAfterTicks: edgeReports.silentAfterMs / tickMs,
    maxReporters: maxEdges,
  });
  const waiters = new Set<Waiter>();
  let newest: SnapshotRevision | undefined;
  let ticks = 0;

  /** Returns the last sequence of an epoch that every live edge has applied, or -1. */
  const lowestApplied = (epoch: string) =>
    ticks < liveAfterTicks ? -1 : lowestOf(edges.states(), epoch);

  function resolveWaiters(): void {
    let epoch: string | undefined;
    let lowest = -1;
    for (const waiter of waiters) {
      if (waiter.epoch !== epoch) {
        epoch = waiter.epoch;
        lowest = lowestApplied(epoch);
      }
      if (lowest >= waiter.sequence) waiter.resolve();
    }
  }

  function takeCurrent(id: string, applied: SnapshotRevision): boolean {
    // A new or formerly silent edge may be far behind. It must catch up first; otherwise writes would wait for it.
    const edge = edges.get(id) ?? { applied, liveFrom: newest };
    edge.applied = applied;
    if (edge.liveFrom?.epoch !== newest?.epoch && edge.liveFrom !== undefined)
      edge.liveFrom = newest;
    if (edge.liveFrom !== undefined && contains(applied, edge.liveFrom)) edge.liveFrom = undefined;
    return edges.set(id, edge);
  }

  return {
    take(report) {
      let isKnown = true;
      if (report.state === "stopped") edges.delete(report.edge);
      else if (report.state === "starting")
        isKnown = edges.set(report.edge, { applied: undefined, liveFrom: undefined });
      else isKnown = takeCurrent(report.edge, { epoch: report.epoch, revision: report.revision });
      resolveWaiters();
      return isKnown ? undefined : "too many edges report";
    },
    published(revision) {
      if (newest === undefined || !contains(newest, revision)) newest = revision;
    },
    tick() {
      ticks += 1;
      edges.tick();
      resolveWaiters();
    },
    interrupted() {
      edges.interrupted();
      ticks = 0;
    },
    async waitUntilApplied({ epoch, revision: sequence }, ended) {
      if (ended.aborted || lowestApplied(epoch) >= sequence) return;
      const { promise, resolve } = Promise.withResolvers<void>();
      const waiter = { epoch, sequence, resolve };
      waiters.add(waiter);
      ended.addEventListener("abort", resolve as () => void, { once: true });
      await promise;
      waiters.delete(waiter);
    },
    count: () => [...edges.states()].filter(({ liveFrom }) => liveFrom === undefined).length,
  };
}

/** Passes the reports of edges to the live edges until it is stopped. */
export function followEdges(options: {
  connection: NatsConnection;
  edges: LiveEdges;
  /** Called when the connection to NATS is lost. */
  onLoss: () => void;
  logger: Logger;
}): FollowedReports {
  const { connection, edges, logger } = options;
  return followReports({
    ...{ connection, subject: edgeReports.subject, maxBytes: edgeReports.maxBytes, logger },
    ...{ check: checkEdgeReport, onReport: edges.take, tickMs, onTick: edges.tick },
    onLoss() {
      edges.interrupted();
      options.onLoss();
    },
  });
}

function lowestOf(edges: Iterable<Edge>, epoch: string): number {
  let lowest = Number.POSITIVE_INFINITY;
  for (const { applied, liveFrom } of edges) {
    if (liveFrom !== undefined) continue;
    lowest = Math.min(lowest, applied?.epoch === epoch ? applied.revision : -1);
  }
  return lowest;
}

function contains(one: SnapshotRevision, other: SnapshotRevision): boolean {
  return one.epoch === other.epoch && one.revision >= other.revision;
}
