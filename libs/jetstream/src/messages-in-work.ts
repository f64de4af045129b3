import { EventEmitter, once } from "node:events";
import { pause } from "@halyard/timing";
import type { JsMsg } from "@nats-io/jetstream";

/**
 * The messages that are being processed, each in a slot of its own. While a message is here the broker
 * is told that it is worked on, so that it goes to nobody else. After a loss of the connection it may
 * come again all the same: then it is not begun a second time, but what there is to say about it is
 * said of its newest delivery.
 *
 * The broker knows a message by its sequence. A stream that was made anew counts from one again, so
 * nothing is said any more about messages of the one before: it would be taken for another's.
 */
export type MessageInWork = {
  /** As it was delivered last. */
  readonly delivery: JsMsg;
  /** Aborted when the message is not to be waited for any longer. */
  readonly cancelled: AbortSignal;
};

/** Outcome of a message: it leaves the queue, another replica gets it, or it is delivered again later. */
export type Settlement = "remove" | "release" | "later";

/** Delay before a message that cannot be processed yet is delivered again. */
const laterMs = 250;

export type MessagesInWork = {
  freeSlots(): number;
  slotIsFree(): Promise<void>;
  /** Begins with a message, unless it is in work already. There has to be a free slot. */
  take(delivery: JsMsg): void;
  /** Says nothing more about what is in work: its stream is gone. */
  abandonAll(): void;
  /** Begins with nothing more, and with no further attempt at what is in work. */
  cancel(): void;
  /**
   * Lets what is in work come to its end, for a while, and gives the rest back. To be called when no
   * more messages are asked for: what is given back would come here again.
   */
  finish(): Promise<void>;
};

/** What is in work when it is to stop gets this long. */
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
    // A message that is given back while this process requests messages would return to it.
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
      for (const slot of slots.values()) slot.forget();
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
        // It may still come to its end, but it is another's now.
        slot.forget();
      }
    },
  };
}

/** One message in work, and what this process may tell the broker about it. */
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

  /** The work ends before its next attempt. */
  cancel(): void {
    this.#controller.abort();
  }

  /** Calls the work off, and tells the broker nothing more about the message. */
  forget(): void {
    this.#isAbandoned = true;
    this.cancel();
  }

  reportWorking(): void {
    if (this.#maySpeak()) this.delivery.working();
  }

  settle(settlement: Settlement): void {
    if (!this.#maySpeak()) return;
    if (settlement === "remove") this.delivery.ack();
    else this.delivery.nak(settlement === "later" ? laterMs : undefined);
  }

  #maySpeak(): boolean {
    return !this.#isAbandoned && this.#isConnected();
  }
}
