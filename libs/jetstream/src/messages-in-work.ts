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
  delivery: JsMsg;
  /** Aborted when the message is not to be waited for any longer. */
  calledOff: AbortSignal;
};

/** Outcome of a message: it leaves the queue, another replica gets it, or it is delivered again later. */
export type Settlement = "remove" | "give back" | "later";

/** Delay before a message that cannot be processed yet is delivered again. */
const laterMs = 250;

export type MessagesInWork = {
  freeSlots(): number;
  slotIsFree(): Promise<void>;
  /** Begins with a message, unless it is in work already. There has to be a free slot. */
  take(delivery: JsMsg): void;
  /** Says nothing more about what is in work: its stream is gone. */
  forgetAll(): void;
  /** Begins with nothing more, and with no further attempt at what is in work. */
  callOff(): void;
  /**
   * Lets what is in work come to its end, for a while, and gives the rest back. To be called when no
   * more messages are asked for: what is given back would come here again.
   */
  finish(): Promise<void>;
};

type Slot = MessageInWork & { controller: AbortController; isForgotten: boolean };

/** What is in work when it is to stop gets this long. */
const patienceMs = 4_000;

export function createMessagesInWork(options: {
  concurrency: number;
  workingEveryMs: number;
  canSpeak(): boolean;
  process(message: MessageInWork): Promise<Settlement>;
}): MessagesInWork {
  const slots = new Map<string, Slot>();
  let slotFreed = Promise.withResolvers<void>();
  let phase: "working" | "called off" | "finishing" = "working";
  let leftOver: Slot[] = [];

  const working = setInterval(() => {
    for (const slot of slots.values()) say(slot, "working");
  }, options.workingEveryMs);

  function say(slot: Slot, what: "working" | "ack" | "nak"): void {
    if (!slot.isForgotten && options.canSpeak()) slot.delivery[what]();
  }

  function postpone(slot: Slot): void {
    if (!slot.isForgotten && options.canSpeak()) slot.delivery.nak(laterMs);
  }

  async function work(key: string, slot: Slot): Promise<void> {
    const settlement = await options.process(slot);
    if (settlement === "remove") say(slot, "ack");
    else if (settlement === "later") postpone(slot);
    else giveBack(slot);
    slots.delete(key);
    tellSlotFreed();
  }

  function giveBack(slot: Slot): void {
    if (phase === "finishing") say(slot, "nak");
    else if (!slot.isForgotten) leftOver.push(slot);
  }

  function tellSlotFreed(): void {
    slotFreed.resolve();
    slotFreed = Promise.withResolvers();
  }

  async function allSettled(): Promise<void> {
    while (slots.size > 0) await slotFreed.promise;
  }

  function callOffAll(): void {
    for (const { controller } of slots.values()) controller.abort();
  }

  return {
    freeSlots: () => options.concurrency - slots.size,
    slotIsFree: async () => {
      while (slots.size >= options.concurrency && phase === "working") await slotFreed.promise;
    },
    take(delivery) {
      const key = `${delivery.seq} ${delivery.timestampNanos}`;
      const known = slots.get(key);
      if (known !== undefined) {
        known.delivery = delivery;
        return;
      }
      const controller = new AbortController();
      const slot = { delivery, controller, calledOff: controller.signal, isForgotten: false };
      if (phase !== "working") {
        giveBack(slot);
        return;
      }
      slots.set(key, slot);
      void work(key, slot);
    },
    forgetAll() {
      for (const slot of slots.values()) slot.isForgotten = true;
      callOffAll();
    },
    callOff() {
      phase = "called off";
      callOffAll();
      tellSlotFreed();
    },
    async finish() {
      phase = "finishing";
      for (const slot of leftOver) say(slot, "nak");
      leftOver = [];
      const isOver = new AbortController();
      await Promise.race([allSettled(), pause(patienceMs, isOver.signal)]);
      isOver.abort();
      clearInterval(working);
      for (const slot of slots.values()) {
        say(slot, "nak");
        // It may still come to its end, but it is another's now.
        slot.isForgotten = true;
      }
    },
  };
}
