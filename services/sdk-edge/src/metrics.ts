import { isTracing } from "@halyard/tracing";
import { Counter, Gauge, Histogram, type Registry } from "prom-client";
import type { CostlyEvaluations } from "./admission/costly-evaluations.ts";
import type { AnswerCounts } from "./http/answer-counts.ts";
import { countEntries, countListEntries } from "./snapshot/snapshot.ts";
import { type SnapshotHolder, snapshotSources } from "./snapshot/snapshot-holder.ts";
import type { StreamRegistry } from "./streams/stream-registry.ts";

/**
 * The metrics of an edge. All values except the histogram's are read when the metrics are collected, so a request or an
 * event only increments a number.
 */
export type EdgeMetrics = {
  /**
   * Observes the time from the commit of a change until its event is written to the open streams. Streams with a
   * context and streams of rules may follow in later slices. The trace of the change becomes the exemplar.
   */
  observePropagation(seconds: number, traceId: string | undefined): void;
};

/** From the delay of an edge next to the database, to that of a short outage. */
const propagationBucketsSeconds = [
  0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60,
];

export function registerEdgeMetrics(options: {
  registry: Registry;
  holder: SnapshotHolder;
  openStreams: StreamRegistry;
  answerCounts: AnswerCounts;
  costlyEvaluations: Pick<CostlyEvaluations, "waiting" | "rejected">;
  rejectedEntries: () => number;
}): EdgeMetrics {
  registerSnapshotMetrics(options);
  registerStreamMetrics(options);
  registerAnswerMetrics(options);
  registerEvaluationMetrics(options);
  const propagation = new Histogram({
    name: "halyard_change_propagation_seconds",
    help: "Time from the commit of a change until its event is written to the open streams. Streams with a context and streams of rules may follow later.",
    buckets: propagationBucketsSeconds,
    registers: [options.registry],
    enableExemplars: isTracing(),
  });
  if (!isTracing()) return { observePropagation: (seconds) => propagation.observe(seconds) };
  return {
    observePropagation: (value, traceId) =>
      propagation.observe({
        value,
        labels: {},
        ...(traceId !== undefined && { exemplarLabels: { trace_id: traceId } }),
      }),
  };
}

function registerSnapshotMetrics(options: {
  registry: Registry;
  holder: SnapshotHolder;
  rejectedEntries: () => number;
}): void {
  const { registry, holder } = options;
  const registers = [registry];
  new Gauge({
    name: "halyard_snapshot_entries",
    help: "Entries of the snapshot that this edge holds.",
    labelNames: ["kind"],
    registers,
    collect() {
      if (holder.snapshot === undefined) return;
      for (const [kind, count] of Object.entries(countEntries(holder.snapshot)))
        this.set({ kind }, count);
    },
  });
  new Gauge({
    name: "halyard_audience_list_entries",
    help: "Entries in the lists of the audiences that this edge holds.",
    registers,
    collect() {
      if (holder.snapshot !== undefined) this.set(countListEntries(holder.snapshot));
    },
  });
  new Gauge({
    name: "halyard_snapshot_source",
    help: "1 for the source of the snapshot: none, cache or nats.",
    labelNames: ["source"],
    registers,
    collect() {
      for (const source of snapshotSources) this.set({ source }, source === holder.source ? 1 : 0);
    },
  });
  new Gauge({
    name: "halyard_snapshot_age_seconds",
    help: "Time since the snapshot was last known to be current. NaN: there is no snapshot.",
    registers,
    collect() {
      const staleMs = holder.staleMs();
      this.set(staleMs === undefined ? Number.NaN : staleMs / 1_000);
    },
  });
  new Counter({
    name: "halyard_snapshot_entries_rejected_total",
    help: "Snapshot entries that do not match their schema.",
    registers,
    collect() {
      this.reset();
      this.inc(options.rejectedEntries());
    },
  });
}

function registerStreamMetrics({
  registry,
  openStreams,
}: {
  registry: Registry;
  openStreams: StreamRegistry;
}): void {
  const registers = [registry];
  new Gauge({
    name: "halyard_streams_open",
    help: "Open streams.",
    registers,
    collect() {
      this.set(openStreams.size);
    },
  });
  new Counter({
    name: "halyard_stream_events_sent_total",
    help: "Events written to open streams.",
    labelNames: ["event"],
    registers,
    collect() {
      this.reset();
      const { closed: _, ...events } = openStreams.counts;
      for (const [event, count] of Object.entries(events)) this.inc({ event }, count);
    },
  });
  new Counter({
    name: "halyard_streams_closed_total",
    help: "Streams that have ended, by cause.",
    labelNames: ["cause"],
    registers,
    collect() {
      this.reset();
      for (const [cause, count] of Object.entries(openStreams.counts.closed))
        this.inc({ cause }, count);
    },
  });
}

function registerAnswerMetrics(options: { registry: Registry; answerCounts: AnswerCounts }): void {
  new Counter({
    name: "halyard_sdk_responses_total",
    help: "Responses to SDKs.",
    labelNames: ["endpoint", "status"],
    registers: [options.registry],
    collect() {
      this.reset();
      options.answerCounts.each((endpoint, status, count) => this.inc({ endpoint, status }, count));
    },
  });
}

function registerEvaluationMetrics(options: {
  registry: Registry;
  costlyEvaluations: Pick<CostlyEvaluations, "waiting" | "rejected">;
}): void {
  const { registry, costlyEvaluations } = options;
  const registers = [registry];
  new Gauge({
    name: "halyard_costly_evaluations_waiting",
    help: "Costly evaluations that have not started.",
    registers,
    collect() {
      this.set(costlyEvaluations.waiting);
    },
  });
  new Counter({
    name: "halyard_costly_evaluations_rejected_total",
    help: "Costly evaluations that were rejected with 503 because of overload.",
    registers,
    collect() {
      this.reset();
      this.inc(costlyEvaluations.rejected);
    },
  });
}
