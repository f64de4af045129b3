import { type EdgeStreams, edgeStreams } from "@halyard/contracts";
import type { Counts } from "./stream-slots.ts";

/** Monotonic time of a process, and its timers. */
export type Clock = {
  monotonicMs(): number;
  /** Calls `work` later. Returns a function that cancels it. */
  after(delayMs: number, work: () => void): () => void;
};

type StreamReports = {
  /** Reports that the organization's count has changed: immediately, or together with the changes of 50 ms. */
  changed(organizationId: string): void;
  /** Reports all counts. Call it once a second. */
  all(): void;
  /** Reports that the streams of this edge are closed. */
  stop(): void;
};

/** Reports the open streams of this edge to the other edges and to usage metering. */
export function reportStreams(options: {
  edge: string;
  open: Counts;
  send: (report: EdgeStreams) => void;
  clock: Clock;
}): StreamReports {
  const { edge, open, send, clock } = options;
  const changed = new Set<string>();
  let sentAtMs = Number.NEGATIVE_INFINITY;
  let callOff: (() => void) | undefined;

  function sendChanged(): void {
    callOff = undefined;
    sentAtMs = clock.monotonicMs();
    for (const streams of inParts([...changed].map((id) => [id, open.get(id) ?? 0])))
      send({ state: "changed", edge, streams });
    changed.clear();
  }

  function forgetChanged(): void {
    callOff?.();
    callOff = undefined;
    changed.clear();
  }

  return {
    changed(organizationId) {
      changed.add(organizationId);
      if (callOff !== undefined) return;
      const waitMs = sentAtMs + edgeStreams.coalescedMs - clock.monotonicMs();
      if (waitMs <= 0) sendChanged();
      else callOff = clock.after(waitMs, sendChanged);
    },
    all() {
      forgetChanged();
      const parts = inParts([...open]);
      for (const [at, streams] of parts.entries())
        send({ state: "all", edge, part: at + 1, parts: parts.length, streams });
    },
    stop() {
      forgetChanged();
      send({ state: "stopped", edge });
    },
  };
}

/** Divides counts into reports. The result is one empty report if there are no counts. */
function inParts(counts: readonly [string, number][]): Record<string, number>[] {
  const { maxOrganizations } = edgeStreams;
  return Array.from({ length: Math.max(1, Math.ceil(counts.length / maxOrganizations)) }, (_, at) =>
    Object.fromEntries(counts.slice(at * maxOrganizations, (at + 1) * maxOrganizations)),
  );
}
