import { EventEmitter, once } from "node:events";
import { pause } from "@halyard/timing";
import type { JsMsg } from "@nats-io/jetstream";

/**
 * The messages in progress, each in its own slot. While a message is in progress, the broker receives progress reports,
 * so that it does not deliver the message to another replica. After a loss of the connection it may deliver the message
 * again anyway. Processing does not start a second time then; the outcome is reported for the newest delivery.
 *
 * The broker identifies a message by its sequence. A stream that was deleted and created again begins with sequence 1,
 * so nothing is reported about messages of the earlier stream. A report could acknowledge another message.
 */
export type MessageInWork = {
  /** The newest delivery of the message. */
  readonly delivery: JsMsg;
  /** Aborted when the process stops waiting for the message. */
  readonly cancelled: AbortSignal;
};

/** Outcome of a message: it leaves the queue, it is released to another replica, or it is delivered again later. */
export type Settlement = "remove" | "release" | "later";

/** Delay before a message that cannot be processed yet is delivered again. */
const laterMs = 250;

export type MessagesInWork = {
  freeSlots(): number;
  slotIsFree(): Promise<void>;
  /** Starts to process a message, unless it is already in progress. Requires a free slot. */
  take(delivery: JsMsg): void;
  /** Reports nothing more about messages in progress, because their stream no longer exists. */
  abandonAll(): void;
  /** Starts no more messages, and no further attempts at those in progress. */
  cancel(): void;
  /**
   * Waits for messages in progress, for a bounded time, and releases the rest. Call it when no more messages are
   * requested; otherwise a released message could return to this process.
   */
  finish(): Promise<void>;
};

/** Maximum time of `finish`. */
const timeoutMs = 4_000;

type WorkOptions = {
  concurrency: number;
  workingIntervalMs: number;
  isConnected(): boolean;
  process(message: MessageInWork): Promise<Settlement>;
};

export function createMessagesInWork(options: WorkOptions): MessagesInWork {
  const slots = new Map<string, Slot>();
  const changes = new EventEmitter();
  let phase: "working" | "cancelled" | "finishing" = "working";
  let leftOver: Slot[] = [];

  const working = setInterval(() => {
    for (const slot of slots.values()) slot.reportWorking();
  }, options.workingIntervalMs);

  async function work(key: string, slot: Slot): Promise<void> {
    settle(slot, await options.process(slot));
    slots.delete(key);
    changes.emit("slot freed");
  }

  function settle(slot: Slot, settlement: Settlement): void {
    // A message that is released while this process still requests messages could return to it.
    if (settlement === "release" && phase !== "finishing") leftOver.push(slot);
    else slot.settle(settlement);
  }

  async function allSettled(): Promise<void> {
    while (slots.size > 0) await once(changes, "slot freed");
  }

  return {
    freeSlots: () => options.concurrency - slots.size,
    slotIsFree: async () => {
      while (slots.size >= options.concurrency && phase === "working")
        await once(changes, "slot freed");
    },
    take(delivery) {
      const key = `${delivery.seq} ${delivery.timestampNanos}`;
      const known = slots.get(key);
      if (known !== undefined) {
        known.delivery = delivery;
        return;
      }
      const slot = new Slot(delivery, options.isConnected);
      if (phase === "working") {
        slots.set(key, slot);
        void work(key, slot);
      } else settle(slot, "release");
    },
    abandonAll() {
      for (const slot of slots.values()) slot.abandon();
    },
    cancel() {
      phase = "cancelled";
      for (const slot of slots.values()) slot.cancel();
      changes.emit("slot freed");
    },
    async finish() {
      phase = "finishing";
      for (const slot of leftOver) slot.settle("release");
      leftOver = [];
      const isOver = new AbortController();
      await Promise.race([allSettled(), pause(timeoutMs, isOver.signal)]);
      isOver.abort();
      clearInterval(working);
      for (const slot of slots.values()) {
        slot.settle("release");
        // Processing may still complete, but the message belongs to another replica now.
        slot.abandon();
      }
    },
  };
}

/** One message in progress, and the reports about it to the broker. */
class Slot implements MessageInWork {
  delivery: JsMsg;
  readonly #isConnected: () => boolean;
  readonly #controller = new AbortController();
  #isAbandoned = false;

  constructor(delivery: JsMsg, isConnected: () => boolean) {
    this.delivery = delivery;
    this.#isConnected = isConnected;
  }

  get cancelled(): AbortSignal {
    return this.#controller.signal;
  }

  /** Ends the processing before its next attempt. */
  cancel(): void {
    this.#controller.abort();
  }

  /** Cancels the processing, and reports nothing more about the message to the broker. */
  abandon(): void {
    this.#isAbandoned = true;
    this.cancel();
  }

  reportWorking(): void {
    if (this.#mayReport()) this.delivery.working();
  }

  settle(settlement: Settlement): void {
    if (!this.#mayReport()) return;
    if (settlement === "remove") this.delivery.ack();
    else this.delivery.nak(settlement === "later" ? laterMs : undefined);
  }

  #mayReport(): boolean {
    return !this.#isAbandoned && this.#isConnected();
  }
}
