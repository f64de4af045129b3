import { setTimeout as delay } from "node:timers/promises";
import type { LiveEdges } from "../edges/live-edges.ts";
import type { OutboxMessage } from "./outbox-message.ts";
import type { Publications } from "./publications.ts";

/**
 * A committed write takes effect when JetStream has its events and entries, every live edge has applied
 * the entries, and this process uses its API keys. The answer waits for that, with a bound. While NATS is
 * disconnected there is no wait. A wait never fails the write.
 */
export type Effects = {
  /** Registers the rows of a transaction. Call it before the commit. */
  expect(rowIds: readonly number[]): ExpectedEffect;
  /** Ends all waits because the connection to NATS is lost. */
  interrupt(): void;
};

export type ExpectedEffect = {
  wait(messages: readonly OutboxMessage[]): Promise<void>;
  forget(): void;
};

/** The step that a wait had not completed when it ended early. */
export type Incomplete = "disconnected" | "publication" | "edges" | "keys";

/** Maximum time that an answer waits. */
const patienceMs = 500;

export function createEffects(options: {
  publications: Publications;
  edges: Pick<LiveEdges, "applied">;
  isConnected: () => boolean;
  /** Returns whether this process already uses the version of an API key in a message. */
  isInEffect: (message: OutboxMessage) => boolean;
  onIncomplete: (step: Incomplete) => void;
}): Effects {
  const waits = new Set<AbortController>();

  async function waitFor(
    confirmed: ReturnType<Publications["expect"]>["confirmed"],
    messages: readonly OutboxMessage[],
    ended: AbortSignal,
  ): Promise<Incomplete | undefined> {
    const revision = await Promise.race([confirmed, aborted(ended)]);
    if (ended.aborted) return "publication";
    if (revision !== undefined) await options.edges.applied(revision, ended);
    // A relay of release 0.1.0 names no revision.
    else if (messages.some(({ stream }) => stream === "snapshot")) return "edges";
    if (ended.aborted) return "edges";
    while (!messages.every(options.isInEffect)) {
      if (ended.aborted) return "keys";
      await delay(lookAgainAfterMs);
    }
    return undefined;
  }

  return {
    expect(rowIds) {
      const { confirmed, forget } = options.publications.expect(rowIds);
      return {
        forget,
        async wait(messages) {
          if (!options.isConnected()) {
            options.onIncomplete("disconnected");
            return;
          }
          const ending = new AbortController();
          waits.add(ending);
          const timer = setTimeout(() => ending.abort(), patienceMs);
          const incomplete = await waitFor(confirmed, messages, ending.signal);
          clearTimeout(timer);
          waits.delete(ending);
          if (incomplete !== undefined)
            options.onIncomplete(options.isConnected() ? incomplete : "disconnected");
        },
      };
    },
    interrupt() {
      for (const ending of waits) ending.abort();
    },
  };
}

/** The key directory receives an entry a moment after the broker has acknowledged it. */
const lookAgainAfterMs = 1;

function aborted(signal: AbortSignal): Promise<undefined> {
  return new Promise((resolve) => {
    signal.addEventListener("abort", () => resolve(undefined), { once: true });
  });
}
