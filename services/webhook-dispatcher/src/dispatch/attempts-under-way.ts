import { pause } from "@halyard/timing";
import type { ClaimedDelivery, HeldClaim } from "./claim-store.ts";
import type { MakeAttempt } from "./make-attempt.ts";
import type { Slot } from "./plan-claims.ts";

/** The attempts that this process is making, each in a slot of its own. */
export type AttemptsUnderWay = {
  slots(): Slot[];
  /** What these attempts are made for, until each is recorded. */
  held(): HeldClaim[];
  begin(delivery: ClaimedDelivery, kind: "quick" | "slow"): void;
  /** Lets them come to their end, for a few seconds, and calls the rest off. */
  finish(): Promise<void>;
};

/**
 * Time after which an attempt lingers. Most targets answer sooner. An attempt that lingers lets others begin
 * in its place, but its webhook gets no second attempt meanwhile.
 */
const lingersAfterMs = 500;
/** Longer than all but hanging targets take, and far below the bound on stopping. */
const timeoutMs = 5_000;

export function createAttemptsUnderWay(options: {
  makeAttempt: MakeAttempt;
  /** A slot has become free, or one for another attempt. */
  onRoom: () => void;
}): AttemptsUnderWay {
  const { makeAttempt, onRoom } = options;
  const callOff = new AbortController();
  const underWay = new Map<Slot, { delivery: ClaimedDelivery; ended: Promise<void> }>();

  async function run(slot: Slot, delivery: ClaimedDelivery): Promise<void> {
    const timer = setTimeout(() => {
      if (slot.kind === "quick") slot.kind = "lingering";
      onRoom();
    }, lingersAfterMs);
    try {
      await makeAttempt(delivery, callOff.signal);
    } finally {
      clearTimeout(timer);
      underWay.delete(slot);
      onRoom();
    }
  }

  return {
    slots: () => [...underWay.keys()],
    held: () => [...underWay.values()].map(({ delivery }) => delivery),
    begin(delivery, kind) {
      const { id: webhookId, organizationId } = delivery.webhook;
      const slot: Slot = { webhookId, organizationId, kind };
      underWay.set(slot, { delivery, ended: run(slot, delivery) });
    },
    async finish() {
      const ended = Promise.all([...underWay.values()].map((attempt) => attempt.ended));
      const timeout = new AbortController();
      await Promise.race([ended, pause(timeoutMs, timeout.signal)]);
      timeout.abort();
      callOff.abort();
      await ended;
    },
  };
}
