import { setImmediate as afterMicrotasks } from "node:timers/promises";
import { leaseKey } from "@halyard/contracts";
import { isProblem } from "@halyard/service";
import { pino } from "pino";
import { Registry } from "prom-client";
import { type Clock, slotTimes } from "../../src/slots/clock.ts";
import { createLeaseSlots, type LeaseSlots } from "../../src/slots/lease-slots.ts";
import type { LeaseFollower, LeaseStore, StoredEntry } from "../../src/slots/lease-store.ts";
import { createSlotMetrics } from "../../src/slots/slot-metrics.ts";

/**
 * Simulates edges with the real code and the real durations, in simulated time and over a simulated network. Messages
 * are late, replies are lost, and messages arrive long after the sender stopped waiting. Edges are suspended,
 * disconnected and killed. One seed determines everything.
 */
export type World = {
  readonly edges: readonly SimulatedEdge[];
  readonly limit: number | null;
  changeLimit(limit: number | null): void;
  /** If true, every message arrives within milliseconds. */
  isCalm: boolean;
  /** Returns the number of open streams on all edges that were not killed. */
  openStreams(): number;
  /** Returns the number of streams that the bucket counts. */
  countedStreams(): number;
  /** Number of writes into the bucket. */
  readonly writes: number;
  /** Admissions that raised the number of open streams above the limit. */
  readonly excesses: string[];
  /** Writes that raised an edge's count and made the total exceed the limit. */
  readonly wrongClaims: string[];
  pass(ms: number): Promise<void>;
  /** Restarts NATS with an empty disk. Connected edges reconnect within a second. */
  loseDisk(): void;
};

export type SimulatedEdge = {
  readonly open: number;
  readonly slots: LeaseSlots;
  /** Requests a stream and returns the outcome. */
  take(): Promise<"opened" | "full" | "unknown">;
  closeOne(): void;
  cutOff(): void;
  reconnect(): void;
  /** Suspends the edge, like SIGSTOP. */
  freeze(): void;
  /** Resumes the edge, like SIGCONT. All events that became due meanwhile happen immediately, in any order. */
  thaw(): void;
  kill(): void;
  readonly isAlive: boolean;
  /** Time since the bucket accepted a renewal of this edge's entry. */
  renewedAgoMs(): number;
};

const organizationId = "01920000-0000-7000-8100-000000000001";
const answerTimeoutMs = 1_000;
/** Maximum delay of a message: longer than an entry lives without a renewal. */
const maxDelayMs = 30_000;

/** Maximum time of an edge's reconnection to a restarted NATS server. */
const maxReconnectMs = 900;
/** Maximum delay of a delivery. A reader that receives nothing for longer starts again. */
const maxDeliveryMs = 2_500;

type Written = Awaited<ReturnType<LeaseStore["write"]>>;
type Event = { atMs: number; order: number; owner: object | undefined; work: () => void };

export function createWorld(options: { edges: number; limit: number; seed: number }): World {
  const random = randomFrom(options.seed);
  const excesses: string[] = [];
  const wrongClaims: string[] = [];
  let limit: number | null = options.limit;
  let nowMs = 0;
  let order = 0;
  let events: Event[] = [];
  const frozen = new Set<object>();
  const dead = new Set<object>();

  function at(delayMs: number, owner: object | undefined, work: () => void): () => void {
    order += 1;
    const event = { atMs: nowMs + Math.max(0, delayMs), order, owner, work };
    events.push(event);
    return () => {
      events = events.filter((one) => one !== event);
    };
  }

  function nextUntil(untilMs: number): Event | undefined {
    let next: Event | undefined;
    for (const event of events) {
      if (event.atMs > untilMs || (event.owner !== undefined && frozen.has(event.owner))) continue;
      if (next === undefined || isBefore(event, next)) next = event;
    }
    return next;
  }

  // The state of the bucket on its leader.
  const bucket = new Map<string, StoredEntry>();
  let revisions = 0;
  const watchers: ((key: string, entry: StoredEntry) => void)[] = [];

  function applyWrite(key: string, value: object, over: number): Written {
    if ((bucket.get(key)?.revision ?? 0) !== over) return "conflict";
    revisions += 1;
    const entry = { value: structuredClone(value), revision: revisions };
    bucket.set(key, entry);
    for (const notify of watchers) notify(key, entry);
    return revisions;
  }

  function holders(): Record<string, number> {
    const entry = bucket.get(`organization.${organizationId}`)?.value as
      | { holders: Record<string, number> }
      | undefined;
    const isHeld = ([id]: [string, number]) =>
      (bucket.get(`edge.${id}`)?.value as { state?: string } | undefined)?.state === "held";
    return Object.fromEntries(Object.entries(entry?.holders ?? {}).filter(isHeld));
  }
  const countedStreams = () => Object.values(holders()).reduce((sum, count) => sum + count, 0);

  const world: World = {
    get edges() {
      return edges;
    },
    get limit() {
      return limit;
    },
    changeLimit(changed) {
      limit = changed;
    },
    isCalm: false,
    get writes() {
      return revisions;
    },
    openStreams: () => edges.reduce((sum, edge) => sum + edge.open, 0),
    countedStreams,
    excesses,
    wrongClaims,
    async pass(ms) {
      const untilMs = nowMs + ms;
      await afterMicrotasks();
      for (let next = nextUntil(untilMs); next !== undefined; next = nextUntil(untilMs)) {
        nowMs = Math.max(nowMs, next.atMs);
        events = events.filter((event) => event !== next);
        next.work();
        await afterMicrotasks();
      }
      nowMs = untilMs;
    },
    loseDisk() {
      bucket.clear();
      revisions = 0;
      for (const edge of edges) edge.restartConnection();
    },
  };

  function latency(): number {
    if (world.isCalm || random() < 0.9) return random() * 5;
    return random() * (random() < 0.3 ? maxDelayMs : 1_500);
  }

  function createEdge(number: number) {
    const identity = {};
    const edgeId = `0192000${number}-0000-7000-8000-000000000001`;
    let isCutOff = false;
    let isCurrent = false;
    let open = 0;
    let follower: LeaseFollower | undefined;
    let reading = 0;
    let deliveredAtMs = 0;
    let renewedMs = Number.NEGATIVE_INFINITY;
    const isRunning = () => !frozen.has(identity) && !dead.has(identity);

    /** Sends a request to the bucket. The outcome of every failed request is unknown. */
    function ask<T>(effect: () => T): Promise<T | "unknown"> {
      return new Promise((resolve) => {
        at(answerTimeoutMs, identity, () => resolve("unknown"));
        // Without a connection, a message is dropped or sent after the reconnection.
        if (isCutOff && random() < 0.5) return;
        const arrive = () => {
          if (isCutOff) {
            at(500, undefined, arrive);
            return;
          }
          const answer = effect();
          if (world.isCalm || random() > 0.1)
            at(latency(), identity, () => {
              if (!isCutOff) resolve(answer);
            });
        };
        at(latency(), undefined, arrive);
      });
    }

    /** Delivers messages in the order of the stream. */
    function deliver(work: () => void): void {
      const ofReading = reading;
      deliveredAtMs = Math.max(deliveredAtMs, nowMs + Math.min(latency(), maxDeliveryMs));
      at(deliveredAtMs - nowMs, identity, () => {
        if (ofReading === reading) work();
      });
    }

    function stopReading(): void {
      reading += 1;
      isCurrent = false;
      deliveredAtMs = nowMs;
    }

    function read(): void {
      stopReading();
      deliver(() => {
        follower?.onBegin();
        for (const [key, entry] of bucket) follower?.onEntry(key, entry);
        isCurrent = true;
        follower?.onCaughtUp();
      });
    }
    watchers.push((key, entry) => {
      if (!isCutOff) deliver(() => follower?.onEntry(key, entry));
    });

    function write(key: string, value: object, over: number): Written {
      const before = holders()[edgeId] ?? 0;
      const written = applyWrite(key, value, over);
      if (key === leaseKey.edge(edgeId) && typeof written === "number") renewedMs = nowMs;
      const now = holders()[edgeId] ?? 0;
      if (typeof written === "number" && now > Math.max(before, open) && limit !== null)
        if (countedStreams() > limit) wrongClaims.push(`${countedStreams()} at ${nowMs} ms`);
      return written;
    }

    const store: LeaseStore = {
      write: (key, value, over) => ask(() => write(key, value, over)),
      forget: (key) => ask(() => bucket.delete(key)),
      follow(following) {
        follower = following;
        read();
      },
      isConnected: () => !isCutOff,
      isCurrent: () => isCurrent && !isCutOff,
      stop: async () => undefined,
    };
    const clock: Clock = {
      monotonicMs: () => nowMs,
      // Timers have a resolution of a millisecond.
      after: (delayMs, work) => at(Math.max(1, delayMs), identity, work),
    };
    const slots = createLeaseSlots({
      edgeId,
      store,
      clock,
      times: slotTimes,
      limitOf: () => world.limit,
      random,
      metrics: createSlotMetrics(new Registry()),
      logger: pino({ level: "silent" }),
    });

    const edge = {
      slots,
      restartConnection() {
        if (isCutOff) return;
        edge.cutOff();
        at(random() * maxReconnectMs, identity, edge.reconnect);
      },
      get isAlive() {
        return !dead.has(identity);
      },
      get open() {
        return open;
      },
      renewedAgoMs: () => nowMs - renewedMs,
      take: () =>
        new Promise<"opened" | "full" | "unknown">((resolve) => {
          if (!isRunning()) resolve("unknown");
          else
            slots.take(organizationId, (problem) => {
              if (problem !== undefined && isProblem(problem)) {
                resolve(problem.rejected === "RATE_001" ? "full" : "unknown");
                return;
              }
              open += 1;
              if (world.limit !== null && world.openStreams() > world.limit)
                excesses.push(`${world.openStreams()} of ${world.limit} at ${nowMs} ms`);
              resolve("opened");
            });
        }),
      closeOne() {
        if (!isRunning() || open === 0) return;
        open -= 1;
        slots.release(organizationId);
      },
      cutOff() {
        isCutOff = true;
        stopReading();
      },
      reconnect() {
        if (!isCutOff) return;
        isCutOff = false;
        read();
      },
      freeze: () => void frozen.add(identity),
      thaw() {
        if (!frozen.delete(identity)) return;
        for (const event of events)
          if (event.owner === identity && event.atMs <= nowMs) {
            event.atMs = nowMs;
            event.order = random() - 1;
          }
      },
      kill() {
        dead.add(identity);
        open = 0;
        events = events.filter((event) => event.owner !== identity);
        // Messages that were sent before the kill can still arrive.
        frozen.add(identity);
      },
    };
    return edge;
  }

  const edges = Array.from({ length: options.edges }, (_, number) => createEdge(number));
  return world;
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs === other.atMs ? one.order < other.order : one.atMs < other.atMs;
}

/** Returns a deterministic random number generator (Mulberry32). */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
