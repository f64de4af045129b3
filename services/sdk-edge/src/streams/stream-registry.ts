import type { CloseCause, Stream } from "./stream.ts";

/** The open streams, found by environment for changes and by slot for heartbeats. */
export type StreamRegistry = {
  add(stream: Stream): void;
  remove(stream: Stream): void;
  ofEnvironment(environmentId: string): ReadonlySet<Stream>;
  ofSlot(slot: number): ReadonlySet<Stream>;
  /** A loop and not a generator, which would leave an object behind for every stream it passes. */
  each(visit: (stream: Stream) => void): void;
  readonly size: number;
};

/** What the streams of this edge have done; plain numbers, because they grow with every event. */
export type StreamCounts = { flags: number; heartbeat: number; closed: Record<CloseCause, number> };

export function createStreamCounts(): StreamCounts {
  return {
    flags: 0,
    heartbeat: 0,
    closed: { client: 0, key_ended: 0, slow_reader: 0, drain: 0 },
  };
}

const nobody: ReadonlySet<Stream> = new Set();

export function createStreamRegistry(slots: number): StreamRegistry {
  const byEnvironment = new Map<string, Set<Stream>>();
  const bySlot = Array.from({ length: slots }, () => new Set<Stream>());
  let size = 0;

  return {
    add(stream) {
      const neighbours = byEnvironment.get(stream.environmentId);
      if (neighbours === undefined) byEnvironment.set(stream.environmentId, new Set([stream]));
      else neighbours.add(stream);
      bySlot[stream.slot]?.add(stream);
      size += 1;
    },

    remove(stream) {
      bySlot[stream.slot]?.delete(stream);
      const neighbours = byEnvironment.get(stream.environmentId);
      neighbours?.delete(stream);
      if (neighbours?.size === 0) byEnvironment.delete(stream.environmentId);
      size -= 1;
    },

    ofEnvironment: (environmentId) => byEnvironment.get(environmentId) ?? nobody,
    ofSlot: (slot) => bySlot[slot] ?? nobody,

    each(visit) {
      for (const streams of bySlot) for (const stream of streams) visit(stream);
    },

    get size() {
      return size;
    },
  };
}
