import { isBrokerUnavailable } from "@halyard/jetstream";
import { publishLastSeen } from "@halyard/reports";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";

/**
 * Times of the last use of keys in this process that are not sent to management yet. The first use of a key is sent
 * soon, because a user may be watching whether the key works. Later uses are sent every few seconds.
 */
export type LastUsed = {
  note(keyId: string, atMs: number): void;
  /**
   * Returns and removes the times that are due to be sent, up to a number of keys. `monotonicMs` is the time of a
   * monotonic clock.
   */
  take(monotonicMs: number, max: number): UsedKey[];
};

type UsedKey = { keyId: string; atMs: number };

/** Interval of sending the last use of a key that is used continuously. */
const resendAfterMs = 5_000;

/** Bounds the memory to a few megabytes during an outage. Beyond it, uses of further keys are not recorded. */
const defaultMaxKeys = 50_000;

export function createLastUsed({ maxKeys = defaultMaxKeys } = {}): LastUsed {
  const usedAtMs = new Map<string, number>();
  /** Times of sending by recently sent keys, in their order. */
  const sentAtMs = new Map<string, number>();

  function removeExpired(monotonicMs: number): void {
    for (const [keyId, atMs] of sentAtMs) {
      if (monotonicMs - atMs < resendAfterMs) return;
      sentAtMs.delete(keyId);
    }
  }

  return {
    note(keyId, atMs) {
      const known = usedAtMs.get(keyId);
      if (known === undefined && usedAtMs.size >= maxKeys) return;
      if (known === undefined || known < atMs) usedAtMs.set(keyId, atMs);
    },
    take(monotonicMs, max) {
      removeExpired(monotonicMs);
      const taken: UsedKey[] = [];
      for (const [keyId, atMs] of usedAtMs) {
        if (taken.length === max) break;
        if (sentAtMs.has(keyId)) continue;
        usedAtMs.delete(keyId);
        sentAtMs.set(keyId, monotonicMs);
        taken.push({ keyId, atMs });
      }
      return taken;
    },
  };
}

/** Maximum delay of sending the first use of a key. */
const pollIntervalMs = 1_000;

/** A message of this size has about 80 KB. */
const keysPerMessage = 1_000;

/**
 * Sends times of last use to management. If NATS is unavailable or too many messages wait, they are kept and sent
 * later. If the process is killed, they are lost, and the next use of a key replaces its time.
 */
export function sendLastUsed(options: {
  client: JetStreamClient;
  lastUsed: LastUsed;
  monotonicMs: () => number;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { client, lastUsed, monotonicMs, logger } = options;
  let unsent: UsedKey[] = [];
  let isPostponed = false;

  async function send(): Promise<void> {
    for (;;) {
      if (unsent.length === 0) unsent = lastUsed.take(monotonicMs(), keysPerMessage);
      if (unsent.length === 0) return;
      const keys = unsent.map(({ keyId, atMs }) => ({
        key_id: keyId,
        used_at: new Date(atMs).toISOString(),
      }));
      const outcome = await publishLastSeen(client, { keys, environments: [], flags: [] });
      if (outcome === "too many wait") return postpone();
      isPostponed = false;
      unsent = [];
    }
  }

  /** Logs only once until sending succeeds, because the next attempt follows a second later. */
  function postpone(): void {
    if (!isPostponed)
      logger.warn("too many messages wait for management; times of last use are sent later");
    isPostponed = true;
  }

  const lastUsedSender = startInterval(send, {
    intervalMs: pollIntervalMs,
    isExpected: isBrokerUnavailable,
    onFailure(err, isRepeated) {
      if (!isRepeated)
        logger.warn({ err }, "times of last use could not be sent to NATS; retrying");
    },
  });
  return {
    async stop() {
      await lastUsedSender.stop();
      await send().catch((error: unknown) => {
        logger.warn({ err: error }, "the last times of use could not be sent before the end");
      });
    },
  };
}
