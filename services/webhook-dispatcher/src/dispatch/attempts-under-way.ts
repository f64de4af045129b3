import { pause } from "@halyard/timing";
import type { ClaimedDelivery } from "./claim-store.ts";
import type { MakeAttempt } from "./make-attempt.ts";
import type { RunningAttempt } from "./plan-claims.ts";

/** The attempts in progress in this process. */
type AttemptsUnderWay = {
  running(): RunningAttempt[];
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
  onCapacity: () => void;
}): AttemptsUnderWay {
  const { makeAttempt, onCapacity } = options;
  const cancel = new AbortController();
  const underWay = new Map<RunningAttempt, Promise<void>>();

  async function run(attempt: RunningAttempt, delivery: ClaimedDelivery): Promise<void> {
    const timer = setTimeout(() => {
      if (attempt.kind === "quick") attempt.kind = "lingering";
      onCapacity();
    }, lingersAfterMs);
    try {
      await makeAttempt(delivery, cancel.signal);
    } finally {
      clearTimeout(timer);
      underWay.delete(attempt);
      onCapacity();
    }
  }

  return {
    running: () => [...underWay.keys()],
    begin(delivery, kind) {
      const { id: webhookId, organizationId } = delivery.webhook;
      const attempt: RunningAttempt = { webhookId, organizationId, kind };
      underWay.set(attempt, run(attempt, delivery));
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
