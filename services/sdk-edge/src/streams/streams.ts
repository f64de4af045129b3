import type { EnvironmentViews } from "../environment/environment-views.ts";
import {
  createStreamCounts,
  createStreamRegistry,
  type StreamCounts,
  type StreamRegistry,
} from "./stream.ts";
import { createStreamHub, type StreamHub } from "./stream-hub.ts";
import { createStreamRounds, type StreamRounds } from "./stream-rounds.ts";

/** All open streams of an edge: who is there, what they are told, and what is done to them. */
export type Streams = {
  registry: StreamRegistry;
  counts: StreamCounts;
  hub: StreamHub;
  rounds: StreamRounds;
  stop(): void;
};

export function createStreams(options: {
  views: EnvironmentViews;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  now: () => number;
  random: () => number;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): Streams {
  const counts = createStreamCounts();
  const registry = createStreamRegistry(counts);
  const hub = createStreamHub({ ...options, registry, counts });
  const rounds = createStreamRounds({ ...options, registry, counts });
  return {
    registry,
    counts,
    hub,
    rounds,
    stop() {
      rounds.stop();
      hub.stop();
    },
  };
}
