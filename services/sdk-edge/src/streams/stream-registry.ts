import type { CloseCause, FlagsStream, RefetchStream, Stream } from "./stream.ts";

/** The open streams, found by kind and environment for changes and by slot for heartbeats. */
export type StreamRegistry = {
  add(stream: Stream): void;
  remove(stream: Stream): void;
  flagsStreamsOf(environmentId: string): ReadonlySet<FlagsStream>;
  refetchStreamsOf(environmentId: string): ReadonlySet<RefetchStream>;
  ofSlot(slot: number): ReadonlySet<Stream>;
  /** A loop and not a generator, which would leave an object behind for every stream it passes. */
  each(visit: (stream: Stream) => void): void;
  readonly size: number;
};

/** What the streams of this edge have done; plain numbers, because they grow with every event. */
export type StreamCounts = {
  flags: number;
  refetch: number;
  heartbeat: number;
  closed: Record<CloseCause, number>;
};

export function createStreamCounts(): StreamCounts {
  return {
    flags: 0,
    refetch: 0,
    heartbeat: 0,
    closed: { client: 0, key_ended: 0, slow_reader: 0, drain: 0 },
  };
}

const nobody: ReadonlySet<never> = new Set();

export function createStreamRegistry(slots: number): StreamRegistry {
  const byKind = { flags: createGroups<FlagsStream>(), refetch: createGroups<RefetchStream>() };
  const groupsOf = ({ kind }: Stream): Groups<Stream> => byKind[kind] as Groups<Stream>;
  const bySlot = Array.from({ length: slots }, () => new Set<Stream>());
  let size = 0;

  return {
    add(stream) {
      groupsOf(stream).add(stream);
      bySlot[stream.slot]?.add(stream);
      size += 1;
    },

    remove(stream) {
      bySlot[stream.slot]?.delete(stream);
      groupsOf(stream).remove(stream);
      size -= 1;
    },

    flagsStreamsOf: byKind.flags.ofEnvironment,
    refetchStreamsOf: byKind.refetch.ofEnvironment,
    ofSlot: (slot) => bySlot[slot] ?? nobody,

    each(visit) {
      for (const streams of bySlot) for (const stream of streams) visit(stream);
    },

    get size() {
      return size;
    },
  };
}

type Groups<S extends Stream> = {
  add(stream: S): void;
  remove(stream: S): void;
  ofEnvironment(environmentId: string): ReadonlySet<S>;
};

function createGroups<S extends Stream>(): Groups<S> {
  const byEnvironment = new Map<string, Set<S>>();
  return {
    add(stream) {
      const neighbours = byEnvironment.get(stream.environmentId);
      if (neighbours === undefined) byEnvironment.set(stream.environmentId, new Set([stream]));
      else neighbours.add(stream);
    },
    remove(stream) {
      const neighbours = byEnvironment.get(stream.environmentId);
      neighbours?.delete(stream);
      if (neighbours?.size === 0) byEnvironment.delete(stream.environmentId);
    },
    ofEnvironment: (environmentId) => byEnvironment.get(environmentId) ?? nobody,
  };
}
