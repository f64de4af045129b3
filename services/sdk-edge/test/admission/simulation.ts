import { type EdgeStreams, edgeStreams } from "@halyard/contracts";
import { createOpenStreams } from "@halyard/reports";
import { reportStreams } from "../../src/admission/report-streams.ts";
import { type Counts, createStreamSlots } from "../../src/admission/stream-slots.ts";

/**
 * Simulates the slots of edges in simulated time, over a simulated NATS that delivers the reports of an edge late, but
 * in order. It has no randomness, so a story determines everything.
 */
export type World = {
  readonly edges: readonly SimulatedEdge[];
  limit: number | null;
  /** Delay of each report. */
  delayMs: number;
  /** The reports sent so far. */
  readonly sent: readonly EdgeStreams[];
  openStreams(): number;
  /** Returns the number of streams on other edges that opened within a time. */
  openedElsewhere(edge: SimulatedEdge, withinMs: number): number;
  pass(ms: number): void;
};

export type SimulatedEdge = {
  /** False while its connection to NATS is lost. Reports to and from it are then lost too. */
  isConnected: boolean;
  /** True while it is suspended. Its timers and the reports to it wait. */
  isSuspended: boolean;
  isAlive: boolean;
  readonly open: number;
  /** Number of streams of the organization that this edge knows. */
  known(): number;
  take(organizationId?: string): "opened" | "full";
  closeOne(): void;
  stop(): void;
};

type Event = { atMs: number; edge: SimulatedEdge; work: () => void };

export const organization = "01920000-0000-7000-8100-000000000001";

export function createWorld(count: number, limit: number | null): World {
  let nowMs = 0;
  let events: Event[] = [];
  const sent: EdgeStreams[] = [];
  const opened: { atMs: number; edge: SimulatedEdge }[] = [];
  const deliveries = new Map<SimulatedEdge, (report: EdgeStreams) => void>();

  function after(delayMs: number, edge: SimulatedEdge, work: () => void): () => void {
    const event = { atMs: nowMs + delayMs, edge, work };
    events.push(event);
    return () => {
      events = events.filter((each) => each !== event);
    };
  }

  function createEdge(number: number): SimulatedEdge {
    const open: Counts = new Map();
    const name = `01920000-0000-7000-8200-${String(number).padStart(12, "0")}`;
    const others = createOpenStreams({ except: name });
    const edge: SimulatedEdge = {
      isConnected: true,
      isSuspended: false,
      isAlive: true,
      get open() {
        return [...open.values()].reduce((sum, streams) => sum + streams, 0);
      },
      known: () => edge.open + others.of(organization),
      take(organizationId = organization) {
        if (slots.take(organizationId) !== undefined) return "full";
        opened.push({ atMs: nowMs, edge });
        return "opened";
      },
      closeOne: () => void (edge.open > 0 && slots.release(organization)),
      stop() {
        for (const [id, streams] of [...open])
          for (let closed = 0; closed < streams; closed += 1) slots.release(id);
        reports.stop();
        edge.isAlive = false;
      },
    };
    function send(report: EdgeStreams): void {
      if (!edge.isConnected) return;
      sent.push(report);
      for (const [other, deliver] of deliveries)
        after(world.delayMs, other, () => other.isConnected && deliver(report));
    }
    const reports = reportStreams({
      ...{ edge: name, open, send },
      clock: { monotonicMs: () => nowMs, after: (ms, work) => after(ms, edge, work) },
    });
    const slots = createStreamSlots({
      ...{ open, others, limitOf: () => world.limit, onRejected: () => undefined },
      onChanged: reports.changed,
    });
    function tick(): void {
      if (edge.isConnected) {
        others.tick();
        reports.all();
      }
      after(edgeStreams.intervalMs, edge, tick);
    }
    after(number * 100, edge, tick);
    deliveries.set(edge, others.take);
    return edge;
  }

  /** Does the work that is due, in the order of time. A suspended edge does its work when it resumes. */
  function runDue(untilMs: number): void {
    for (;;) {
      const due = events
        .filter(({ atMs, edge }) => atMs <= untilMs && !edge.isSuspended)
        .toSorted((a, b) => a.atMs - b.atMs)[0];
      if (due === undefined) break;
      events = events.filter((each) => each !== due);
      nowMs = Math.max(nowMs, due.atMs);
      if (due.edge.isAlive) due.work();
    }
    nowMs = untilMs;
  }

  const edges: SimulatedEdge[] = [];
  const world: World = {
    edges,
    limit,
    delayMs: 5,
    sent,
    openStreams: () => edges.reduce((sum, { isAlive, open }) => sum + (isAlive ? open : 0), 0),
    openedElsewhere: (edge, withinMs) =>
      opened.filter((each) => each.edge !== edge && each.atMs >= nowMs - withinMs).length,
    pass: (ms) => runDue(nowMs + ms),
  };
  for (let number = 0; number < count; number += 1) edges.push(createEdge(number));
  // No report is under way, so a test may change the delay, and reports still arrive in order.
  world.pass(edgeStreams.intervalMs + world.delayMs);
  return world;
}
