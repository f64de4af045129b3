import { isBrokerUnavailable, publishLastSeen } from "@halyard/jetstream";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";

/**
 * When keys were last used in this process, until management has been told. The first use of a key is to
 * be told soon, because somebody may be looking whether it works; further ones every few seconds.
 */
export type LastUsed = {
  note(keyId: string, atMs: number): void;
  /**
   * Hands over what is to be told by now, up to a number of keys, and forgets it. `monotonicMs` tells
   * only how much time has passed.
   */
  take(monotonicMs: number, max: number): UsedKey[];
};

export type UsedKey = { keyId: string; atMs: number };

/** A key that is in use all the time is told of this often. */
const resendAfterMs = 5_000;

/** A few megabytes, for when nobody can be told. What is left out is a key's latest use, until its next. */
const defaultMaxKeys = 50_000;

export function createLastUsed({ maxKeys = defaultMaxKeys } = {}): LastUsed {
  const usedAtMs = new Map<string, number>();
  /** Of the keys that were told of lately, in the order in which that was. */
  const sentAtMs = new Map<string, number>();

  function forgetSent(monotonicMs: number): void {
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
      forgetSent(monotonicMs);
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

/** So soon is told that a key was used for the first time. */
const pollIntervalMs = 1_000;

/** Some 80 KB. */
const keysPerMessage = 1_000;

/**
 * Tells management when keys were last used. What NATS does not take, and what management has no time for,
 * is kept and sent later; what a process knows when it is killed is lost, and told with the key's next use.
 */
export function sendLastUsed(options: {
  client: JetStreamClient;
  lastUsed: LastUsed;
  monotonicMs: () => number;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { client, lastUsed, monotonicMs, logger } = options;
  let unsent: UsedKey[] = [];
  let failed = false;
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
      failed = false;
      if (outcome === "too many wait") return postpone();
      isPostponed = false;
      unsent = [];
    }
  }

  /** Said once for as long as it lasts: the next try is a second later. */
  function postpone(): void {
    if (!isPostponed) logger.warn("management is behind with what was last used; it is told later");
    isPostponed = true;
  }

  /** Once for each outage: the next try is a second later. */
  function onFailure(error: unknown): void {
    if (!failed)
      logger.warn({ err: error }, "which keys were used was not taken by NATS; it is sent again");
    failed = true;
  }

  const lastUsedSender = startInterval(send, {
    intervalMs: pollIntervalMs,
    isExpected: isBrokerUnavailable,
    onFailure,
  });
  return {
    async stop() {
      await lastUsedSender.stop();
      await send().catch((error: unknown) => {
        logger.warn({ err: error }, "which keys were used at the end could not be told");
      });
    },
  };
}
