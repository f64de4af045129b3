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
/** Maximum time of `stop`. */
const timeoutMs = 4_000;

type Slot = {
  delivery: JsMsg;
  cancelled: AbortSignal;
  /** Cancels the processing before its next attempt. */
  cancel(): void;
  /** True if nothing more is reported about the message to the broker. */
  isAbandoned: boolean;
};

function createSlot(delivery: JsMsg): Slot {
  const cancelling = new AbortController();
  const cancel = () => cancelling.abort();
  return { delivery, cancelled: cancelling.signal, cancel, isAbandoned: false };
}

function abandon(slot: Slot): void {
  slot.isAbandoned = true;
  slot.cancel();
}

type WorkOptions = {
  concurrency: number;
  workingIntervalMs: number;
  isConnected(): boolean;
  process(message: MessageInWork): Promise<Settlement>;
};

export function createMessagesInWork(options: WorkOptions) {
  const slots = new Map<string, Slot>();
  const changes = new EventEmitter();
  let isStopping = false;
  const mayReport = ({ isAbandoned }: Slot) => !isAbandoned && options.isConnected();

  const working = setInterval(() => {
    for (const slot of slots.values()) if (mayReport(slot)) slot.delivery.working();
  }, options.workingIntervalMs);

  function settle(slot: Slot, settlement: Settlement): void {
    if (!mayReport(slot)) return;
    if (settlement === "remove") slot.delivery.ack();
    else slot.delivery.nak(settlement === "later" ? laterMs : undefined);
  }

  async function work(key: string, slot: Slot): Promise<void> {
    settle(slot, await options.process(slot));
    slots.delete(key);
    changes.emit("slot freed");
  }

  async function allSettled(): Promise<void> {
    while (slots.size > 0) await once(changes, "slot freed");
  }

  return {
    freeSlots: () => options.concurrency - slots.size,
    /** Waits for a free slot, or until the signal is aborted. */
    async slotIsFree(signal: AbortSignal): Promise<void> {
      while (slots.size >= options.concurrency && !signal.aborted)
        // Rejects only when the signal is aborted.
        await once(changes, "slot freed", { signal }).catch(() => undefined);
    },
    /** Starts to process a message, unless it is already in progress. Requires a free slot. */
    take(delivery: JsMsg): void {
      const key = `${delivery.seq} ${delivery.timestampNanos}`;
      const known = slots.get(key);
      if (known !== undefined) known.delivery = delivery;
      if (known !== undefined || isStopping) return;
      const slot = createSlot(delivery);
      slots.set(key, slot);
      void work(key, slot);
    },
    /** Reports nothing more about messages in progress, because their stream no longer exists. */
    abandonAll(): void {
      for (const slot of slots.values()) abandon(slot);
    },
    /**
     * Ends the pauses between attempts, waits up to four seconds for messages in progress, and releases the rest.
     * Call it when no more messages are requested; otherwise a released message could return to this process.
     */
    async stop(): Promise<void> {
      isStopping = true;
      for (const slot of slots.values()) slot.cancel();
      const isOver = new AbortController();
      await Promise.race([allSettled(), pause(timeoutMs, isOver.signal)]);
      isOver.abort();
      clearInterval(working);
      for (const slot of slots.values()) {
        settle(slot, "release");
        // Processing may still complete, but the message belongs to another replica now.
        abandon(slot);
      }
    },
  };
}
