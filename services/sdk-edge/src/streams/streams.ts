import type { EnvironmentViews } from "../environment/environment-views.ts";
import {
  createOpenStreams,
  createStreamCounts,
  type OpenStreams,
  type StreamCounts,
} from "./stream.ts";
import { createStreamHub, type StreamHub } from "./stream-hub.ts";
import { createStreamUpkeep, type StreamUpkeep } from "./stream-upkeep.ts";

/** The open streams of an edge: their registry, counts, events and upkeep. */
export type Streams = {
  openStreams: OpenStreams;
  counts: StreamCounts;
  hub: StreamHub;
  upkeep: StreamUpkeep;
  stop(): void;
};

export function createStreams(options: {
  views: EnvironmentViews;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  now: () => number;
  random: () => number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): Streams {
  const counts = createStreamCounts();
  const openStreams = createOpenStreams(counts);
  const hub = createStreamHub({ ...options, openStreams, counts });
  const upkeep = createStreamUpkeep({ ...options, openStreams, counts });
  return {
    openStreams,
    counts,
    hub,
    upkeep,
    stop() {
      upkeep.stop();
      hub.stop();
    },
  };
}
