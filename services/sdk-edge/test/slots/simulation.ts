import { setImmediate as afterMicrotasks } from "node:timers/promises";
import { isRefusal } from "@halyard/service";
import { pino } from "pino";
import type { Clock } from "../../src/slots/clock.ts";
import { createLeaseSlots, type LeaseSlots } from "../../src/slots/lease-slots.ts";
import type {
  LeaseFollower,
  LeaseStore,
  ReadEntry,
  StoredEntry,
  Written,
} from "../../src/slots/lease-store.ts";
import { slotTimes } from "../../src/slots/slot-times.ts";

/**
 * Edges as they are, with their real times, in a world without real time or network: a second passes as
 * soon as all that happens in it has happened. Messages are late, get lost after they had their effect,
 * or have it long after nobody waits any more; reads may be answered by a replica that is behind; edges
 * are stopped, cut off and killed. Everything follows from one seed.
 */
export type World = {
  readonly edges: readonly SimulatedEdge[];
  readonly limit: number | null;
  changeLimit(limit: number | null): void;
  /** Calm: messages arrive within milliseconds, and replicas are not behind. */
  isCalm: boolean;
  /** Streams that are open on edges that run. */
  openStreams(): number;
  /** What should never have happened. */
  readonly violations: string[];
  pass(ms: number): Promise<void>;
  dropBucket(): void;
};

export type SimulatedEdge = {
  readonly open: number;
  readonly slots: LeaseSlots;
  /** Asks for a stream; answers what became of it. */
  take(): Promise<"opened" | "full" | "unknown">;
  closeOne(): void;
  cutOff(): void;
  reconnect(): void;
  /** As SIGSTOP does. */
  freeze(): void;
  /** As SIGCONT does: all that was due meanwhile happens at once, in any order. */
  thaw(): void;
  kill(): void;
  readonly isAlive: boolean;
};

const organizationId = "01920000-0000-7000-8100-000000000001";
const answerTimeoutMs = 1_000;
/** Long enough for leases to end while a message is on its way. */
const longestDelayMs = 30_000;

type Event = { atMs: number; order: number; owner: object | undefined; work: () => void };

export function createWorld(options: { edges: number; limit: number; seed: number }): World {
  const random = randomFrom(options.seed);
  const violations: string[] = [];
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

  // The bucket, as its leader has it, and what replicas that are behind may still answer.
  const history = new Map<string, StoredEntry[]>();
  let revisions = 0;
  const watchers: ((key: string, entry: StoredEntry) => void)[] = [];
  const present = (key: string) => history.get(key)?.at(-1);

  function applyWrite(key: string, value: object, over: number): Written {
    if ((present(key)?.revision ?? 0) !== over) return { outcome: "conflict" };
    revisions += 1;
    const entry = { value: structuredClone(value), revision: revisions };
    history.set(key, [...(history.get(key) ?? []), entry]);
    for (const tell of watchers) tell(key, entry);
    return { outcome: "written", revision: revisions };
  }

  function readSomewhere(key: string): ReadEntry {
    const all = history.get(key) ?? [];
    const behind = world.isCalm || random() < 0.7 ? 0 : Math.floor(random() * 4);
    return { outcome: "read", entry: all.at(-1 - behind) };
  }

  const world: World = {
    get edges() {
      return edges;
    },
    get limit() {
      return limit;
    },
    changeLimit(changed) {
      limit = changed;
      for (const edge of edges) edge.slots.limitChanged(organizationId);
    },
    isCalm: false,
    openStreams: () => edges.reduce((sum, edge) => sum + (edge.isRunning() ? edge.open : 0), 0),
    violations,
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
    dropBucket() {
      history.clear();
      for (const edge of edges) edge.read();
    },
  };

  function latency(): number {
    if (world.isCalm || random() < 0.9) return random() * 5;
    return random() * (random() < 0.3 ? longestDelayMs : 1_500);
  }

  function createEdge(number: number) {
    const identity = {};
    let isCutOff = false;
    let open = 0;
    let follower: LeaseFollower | undefined;
    let reading = 0;
    let deliveredAtMs = 0;
    let leases = 0;
    const isRunning = () => !frozen.has(identity) && !dead.has(identity);

    /** Goes to the bucket and back; whatever goes wrong on the way is unknown here. */
    function ask<T>(effect: () => T): Promise<T | { outcome: "unknown" }> {
      return new Promise((resolve) => {
        at(answerTimeoutMs, identity, () => resolve({ outcome: "unknown" }));
        // What is sent while the connection is lost is dropped, or sent when it stands again.
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

    /** In order, as a stream is read. */
    function deliver(work: () => void): void {
      const ofReading = reading;
      deliveredAtMs = Math.max(deliveredAtMs, nowMs + latency());
      at(deliveredAtMs - nowMs, identity, () => {
        if (ofReading === reading) work();
      });
    }

    let isCurrent = false;
    function read(): void {
      reading += 1;
      isCurrent = false;
      deliveredAtMs = nowMs;
      deliver(() => {
        follower?.onBegin();
        for (const [key, entries] of history) {
          const entry = entries.at(-1);
          if (key.startsWith("edge.") && entry !== undefined)
            follower?.onEntry(key.slice("edge.".length), entry);
        }
        isCurrent = true;
        follower?.onCaughtUp();
      });
    }
    watchers.push((key, entry) => {
      if (isCutOff || !key.startsWith("edge.")) return;
      deliver(() => follower?.onEntry(key.slice("edge.".length), entry));
    });

    const store: LeaseStore = {
      prepare: async () => (await ask(() => true)) === true,
      read: (key) => ask(() => readSomewhere(key)),
      write: (key, value, over) => ask(() => applyWrite(key, value, over)),
      async forget(key) {
        await ask(() => history.delete(key));
      },
      follow(following) {
        follower = following;
        read();
      },
      isCurrent: () => isCurrent && !isCutOff,
    };
    const clock: Clock = {
      elapsed: () => nowMs,
      // No timer is faster than a millisecond.
      after: (delayMs, work) => at(Math.max(1, delayMs), identity, work),
    };
    const slots = createLeaseSlots({
      store,
      clock,
      times: slotTimes,
      limitOf: () => world.limit,
      newId: () => {
        leases += 1;
        return `0192000${number}-0000-7000-8000-${String(leases).padStart(12, "0")}`;
      },
      random,
      logger: pino({ level: "silent" }),
    });
    slots.onLost(() => {
      if (world.limit === null) return;
      for (; open > 0; open -= 1) at(random() * 50, identity, () => slots.release(organizationId));
    });

    return {
      slots,
      isRunning,
      read,
      get isAlive() {
        return !dead.has(identity);
      },
      get open() {
        return open;
      },
      take: () =>
        new Promise<"opened" | "full" | "unknown">((resolve) => {
          if (!isRunning()) resolve("unknown");
          else
            slots.take(organizationId, (refusal) => {
              if (refusal !== undefined && isRefusal(refusal)) {
                resolve(refusal.refused === "RATE_001" ? "full" : "unknown");
                return;
              }
              open += 1;
              if (world.limit !== null && world.openStreams() > world.limit)
                violations.push(`${world.openStreams()} of ${world.limit} at ${nowMs} ms`);
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
        // What was sent before may still arrive.
        frozen.add(identity);
      },
    };
  }

  const edges = Array.from({ length: options.edges }, (_, number) => createEdge(number));
  return world;
}

function isBefore(one: Event, other: Event): boolean {
  return one.atMs === other.atMs ? one.order < other.order : one.atMs < other.atMs;
}

/** Mulberry32: small, and the same everywhere. */
function randomFrom(seed: number): () => number {
  let state = seed;
  return () => {
    state = (state + 0x6d2b79f5) | 0;
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state);
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed;
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 4_294_967_296;
  };
}
