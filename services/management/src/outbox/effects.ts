import type { SnapshotRevision } from "@halyard/contracts";
import { pause } from "@halyard/timing";
import { Counter, Gauge, type Registry } from "prom-client";
import type { LiveEdges } from "./live-edges.ts";
import type { OutboxMessage } from "./outbox-message.ts";

/**
 * Waits until committed writes are in effect: JetStream has stored their entries, every live edge has applied them, and
 * this process uses their API keys. The response to a write waits for this, up to a time-out. It does not wait while
 * NATS is disconnected. An incomplete wait never fails the write.
 */
export type Effects = {
  /**
   * Registers the snapshot rows of a transaction, at least one. Call it before the commit is confirmed, so that no confirmation is
   * missed.
   */
  expect(rowIds: readonly number[]): ExpectedEffect;
  /** Ends all waits, because the connection to NATS is lost. */
  interrupt(): void;
};

export type ExpectedEffect = {
  wait(messages: readonly OutboxMessage[]): Promise<void>;
  forget(): void;
};

/** The step that was incomplete when a wait ended early. */
export type Incomplete = (typeof steps)[number];
const steps = ["disconnected", "publication", "edges", "keys"] as const;

/** Maximum time that a response waits. */
const timeoutMs = 500;
/**
 * Interval at which a wait checks the key directory, which receives an entry shortly after the broker has acknowledged
 * it.
 */
const pollIntervalMs = 1;

export function createEffects(options: {
  publications: Publications;
  edges: Pick<LiveEdges, "waitUntilApplied">;
  isConnected: () => boolean;
  /** Returns whether this process already uses the API key, or the end of an environment, in a message. */
  isInEffect: (message: OutboxMessage) => boolean;
  onIncomplete: (step: Incomplete) => void;
  /** Called after the wait for a change of the snapshot. */
  onWaited: (wait: { durationMs: number; isInEffect: boolean }) => void;
}): Effects {
  const waits = new Set<AbortController>();

  async function waitFor(
    confirmed: Expected["confirmed"],
    messages: readonly OutboxMessage[],
    ended: AbortSignal,
  ): Promise<Incomplete | undefined> {
    const revision = await Promise.race([confirmed, aborted(ended)]);
    if (revision === undefined) return "publication";
    await options.edges.waitUntilApplied(revision, ended);
    if (ended.aborted) return "edges";
    while (!messages.every(options.isInEffect))
      if (!(await pause(pollIntervalMs, ended))) return "keys";
    return undefined;
  }

  async function waitUntilInEffect(
    confirmed: Expected["confirmed"],
    messages: readonly OutboxMessage[],
  ): Promise<Incomplete | undefined> {
    const ending = new AbortController();
    waits.add(ending);
    const timer = setTimeout(() => ending.abort(), timeoutMs);
    const incomplete = await waitFor(confirmed, messages, ending.signal);
    clearTimeout(timer);
    waits.delete(ending);
    return incomplete === undefined || options.isConnected() ? incomplete : "disconnected";
  }

  return {
    expect(rowIds) {
      const { confirmed, forget } = options.publications.expect(rowIds);
      return {
        forget,
        async wait(messages) {
          const startedMs = performance.now();
          const incomplete = options.isConnected()
            ? await waitUntilInEffect(confirmed, messages)
            : "disconnected";
          if (incomplete !== undefined) options.onIncomplete(incomplete);
          options.onWaited({
            durationMs: performance.now() - startedMs,
            isInEffect: incomplete === undefined,
          });
        },
      };
    },
    interrupt() {
      for (const ending of waits) ending.abort();
    },
  };
}

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}

/**
 * Tracks writes that wait for the publication of their outbox rows. The relay confirms rows that the broker has
 * acknowledged: directly in the leading process, and by a PostgreSQL notification in the others. A write registers its
 * rows when it knows their ids. The confirmation is always later, because the relay reads only committed rows.
 */
export type Publications = {
  /**
   * Registers rows, at least one. `confirmed` resolves when all of them are published, with a snapshot revision that
   * contains their entries. `forget` removes the registration.
   */
  expect(rowIds: readonly number[]): Expected;
  confirm(rowIds: Iterable<number>, revision: SnapshotRevision): void;
};

type Expected = { confirmed: Promise<SnapshotRevision>; forget: () => void };

type Waiter = { missing: number; resolve: (revision: SnapshotRevision) => void };

/**
 * Creates the tracker. `onRevision` is called with each revision of the relay, before the rows of the revision are
 * confirmed.
 */
export function createPublications(
  onRevision?: (revision: SnapshotRevision) => void,
): Publications {
  const waiters = new Map<number, Waiter>();
  return {
    expect(rowIds) {
      const { promise, resolve } = Promise.withResolvers<SnapshotRevision>();
      const waiter = { missing: rowIds.length, resolve };
      for (const id of rowIds) waiters.set(id, waiter);
      return {
        confirmed: promise,
        forget: () => {
          for (const id of rowIds) waiters.delete(id);
        },
      };
    },
    confirm(rowIds, revision) {
      onRevision?.(revision);
      for (const id of rowIds) {
        const waiter = waiters.get(id);
        if (waiter === undefined) continue;
        waiters.delete(id);
        waiter.missing -= 1;
        // Confirmations arrive in the order of publication.
        if (waiter.missing === 0) waiter.resolve(revision);
      }
    },
  };
}

/** Registers the metrics of waits. Returns the function that counts a wait that ended early. */
export function createEffectMetrics(
  registry: Registry,
  edges: Pick<LiveEdges, "count">,
): (step: Incomplete) => void {
  const registers = [registry];
  new Gauge({
    name: "halyard_live_edges",
    help: "Live edges that the responses to writes wait for",
    registers,
    collect() {
      this.set(edges.count());
    },
  });
  const incomplete = new Counter({
    name: "halyard_writes_unconfirmed_total",
    help: "Responses to writes that were sent before the write was in effect, by the incomplete step",
    labelNames: ["step"],
    registers,
  });
  for (const step of steps) incomplete.inc({ step }, 0);
  return (step) => incomplete.inc({ step });
}
