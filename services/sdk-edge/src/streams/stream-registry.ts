import type { ServerResponse } from "node:http";
import type { Writable } from "node:stream";
import type { DirectoryKey } from "@halyard/api-keys";
import { EventStream } from "@halyard/http";
import type { ConfigurationTag } from "../answers/configuration-tags.ts";
import type { EnvironmentViews } from "../answers/environment-views.ts";

/**
 * "flags": a stream of values for SDKs; "ruleset": a stream of rules for SDKs; "refetch": a stream of refetches for
 * OpenFeature clients.
 */
type StreamKind = "flags" | "ruleset" | "refetch";

type CloseCause = "client" | "key_ended" | "slow_reader" | "drain";

/**
 * One open stream. There are tens of thousands of them, so each holds as little as possible, and no timer. A stream costs
 * at most the unsent bytes of `EventStream` and one event, whose bytes it shares with others.
 */
export class OpenStream extends EventStream {
  readonly kind: StreamKind;
  readonly key: DirectoryKey;
  /** The reason for the end of the stream. "client" unless the edge ends it. */
  closeCause: CloseCause = "client";

  constructor(kind: StreamKind, response: ServerResponse, key: DirectoryKey) {
    super(response);
    this.kind = kind;
    this.key = key;
  }

  /**
   * The connection itself, without the cost of Node's HTTP layer. Until an earlier response on the same connection has
   * finished, it is the response, whose `writableLength` includes the unsent bytes of the socket.
   */
  override get sink(): Writable {
    return this.response.socket ?? this.response;
  }

  close(cause: CloseCause, lastWords?: string): void {
    if (!this.isOpen) return;
    this.closeCause = cause;
    this.end(lastWords);
  }
}

/** Interval of the heartbeats of values and of refetches. */
export const heartbeatIntervalMs = 15_000;
/**
 * Interval of the heartbeats of rules. Applications evaluate for all their users with these rules, so their SDKs detect
 * a hung edge after 8 s. There are far fewer of these streams than of the others.
 */
export const rulesetHeartbeatIntervalMs = 3_000;

/**
 * Number of groups of streams. Each group has its own time for heartbeats, because writing to all streams takes long.
 */
export const heartbeatGroups = 60;

/** The registry of all open streams of an edge. */
export type StreamRegistry = {
  /** Creates the part of the registry for one kind of streams. */
  ofKind<S extends OpenStream>(kind: KindOfStreams<S>): StreamsOfKind<S>;
  /** Sends a change of an environment to its streams of every kind. */
  notify(environmentId: string): void;
  ofHeartbeatGroup(group: number): ReadonlySet<OpenStream>;
  /** Visits all streams. A generator would allocate an object for each stream. */
  each(visit: (stream: OpenStream) => void): void;
  readonly size: number;
  readonly counts: StreamCounts;
};

type KindOfStreams<S extends OpenStream> = {
  /** Sends a change of the environment to these streams, at least one. */
  notify(environmentId: string, streams: ReadonlySet<S>): void;
  /** Called when a stream has closed. */
  onClose(stream: S): void;
};

type StreamsOfKind<S extends OpenStream> = {
  /** Adds a stream until its response closes. */
  add(stream: S): void;
};

/** Events written by kind, and streams closed by cause. */
type StreamCounts = Record<StreamKind | "heartbeat", number> & {
  closed: Record<CloseCause, number>;
};

/** Options of all kinds of streams. */
export type StreamOptions = {
  openStreams: StreamRegistry;
  views: EnvironmentViews;
  tagOf: (environmentId: string) => ConfigurationTag;
  now: () => number;
  random: () => number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
};

export function createStreamRegistry(): StreamRegistry {
  const counts: StreamCounts = {
    ...{ flags: 0, ruleset: 0, refetch: 0, heartbeat: 0 },
    closed: { client: 0, key_ended: 0, slow_reader: 0, drain: 0 },
  };
  const heartbeatSets = Array.from({ length: heartbeatGroups }, () => new Set<OpenStream>());
  let added = 0;
  let size = 0;
  const notifyKinds: ((environmentId: string) => void)[] = [];
  return {
    ofKind<S extends OpenStream>({ notify, onClose }: KindOfStreams<S>): StreamsOfKind<S> {
      const environments = new Map<string, Set<S>>();
      notifyKinds.push((environmentId) => {
        const streams = environments.get(environmentId);
        if (streams !== undefined) notify(environmentId, streams);
      });
      return {
        add(stream) {
          const { environmentId } = stream.key;
          const sameEnvironment = environments.get(environmentId) ?? new Set<S>();
          const sameHeartbeat = heartbeatSets[added % heartbeatGroups];
          environments.set(environmentId, sameEnvironment.add(stream));
          sameHeartbeat?.add(stream);
          added += 1;
          size += 1;
          stream.response.once("close", () => {
            sameEnvironment.delete(stream);
            if (sameEnvironment.size === 0) environments.delete(environmentId);
            sameHeartbeat?.delete(stream);
            size -= 1;
            counts.closed[stream.closeCause] += 1;
            onClose(stream);
          });
        },
      };
    },
    notify(environmentId) {
      for (const notifyKind of notifyKinds) notifyKind(environmentId);
    },
    ofHeartbeatGroup: (group) => heartbeatSets[group] ?? noStreams,
    each(visit) {
      for (const streams of heartbeatSets) for (const stream of streams) visit(stream);
    },
    get size() {
      return size;
    },
    counts,
  };
}

const noStreams: ReadonlySet<never> = new Set();
