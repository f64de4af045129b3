import { pause } from "@halyard/timing";
import type { ClaimedDelivery } from "./claim-store.ts";
import type { MakeAttempt } from "./make-attempt.ts";
import type { Slot } from "./plan-claims.ts";

/** The attempts in progress in this process. Each uses one slot. */
export type AttemptsUnderWay = {
  slots(): Slot[];
  begin(delivery: ClaimedDelivery, kind: "quick" | "slow"): void;
  /** Waits a few seconds for the attempts to end, then cancels the others. */
  finish(): Promise<void>;
};

/**
 * Time after which an attempt lingers. Most targets answer sooner. An attempt that lingers lets others begin
 * in its place, but its webhook gets no second attempt meanwhile.
 */
const lingersAfterMs = 500;
/** Time that a stop waits for attempts. Only hanging targets take longer. It is far below the time limit of a stop. */
const timeoutMs = 5_000;

export function createAttemptsUnderWay(options: {
  makeAttempt: MakeAttempt;
  /** Called when another attempt may begin: an attempt has ended or lingers. */
  onRoom: () => void;
}): AttemptsUnderWay {
  const { makeAttempt, onRoom } = options;
  const cancel = new AbortController();
  const underWay = new Map<Slot, Promise<void>>();

  async function run(slot: Slot, delivery: ClaimedDelivery): Promise<void> {
    const timer = setTimeout(() => {
      if (slot.kind === "quick") slot.kind = "lingering";
      onRoom();
    }, lingersAfterMs);
    try {
      await makeAttempt(delivery, cancel.signal);
    } finally {
      clearTimeout(timer);
      underWay.delete(slot);
      onRoom();
    }
  }

  return {
    slots: () => [...underWay.keys()],
    begin(delivery, kind) {
      const { id: webhookId, organizationId } = delivery.webhook;
      const slot: Slot = { webhookId, organizationId, kind };
      underWay.set(slot, run(slot, delivery));
    },
    async finish() {
      const ended = Promise.all(underWay.values());
      const timeout = new AbortController();
      await Promise.race([ended, pause(timeoutMs, timeout.signal)]);
      timeout.abort();
      cancel.abort();
      await ended;
    },
  };
}
