import { isBrokerAway, publishLastSeen } from "@halyard/jetstream";
import { startInterval } from "@halyard/timing";
import type { JetStreamClient } from "@nats-io/jetstream";
import type { Logger } from "pino";
import type { LastUsed, UsedKey } from "./last-used.ts";

/** So soon is told that a key was used for the first time. */
const lookEveryMs = 1_000;

/** Some 80 KB. */
const keysPerMessage = 1_000;

/**
 * Tells management when keys were last used. What NATS does not take, and what management has no time for,
 * is kept and sent later; what a process knows when it is killed is lost, and told with the key's next use.
 */
export function tellLastUsed(options: {
  client: JetStreamClient;
  lastUsed: LastUsed;
  monotonicMs: () => number;
  logger: Logger;
}): { stop(): Promise<void> } {
  const { client, lastUsed, monotonicMs, logger } = options;
  let unsent: UsedKey[] = [];
  let failed = false;
  let isLeftForLater = false;

  async function tell(): Promise<void> {
    for (;;) {
      if (unsent.length === 0) unsent = lastUsed.take(monotonicMs(), keysPerMessage);
      if (unsent.length === 0) return;
      const keys = unsent.map(({ keyId, atMs }) => ({
        key_id: keyId,
        used_at: new Date(atMs).toISOString(),
      }));
      const outcome = await publishLastSeen(client, { keys, environments: [], flags: [] });
      failed = false;
      if (outcome === "too many wait") return leaveForLater();
      isLeftForLater = false;
      unsent = [];
    }
  }

  /** Said once for as long as it lasts: the next try is a second later. */
  function leaveForLater(): void {
    if (!isLeftForLater)
      logger.warn("management is behind with what was last used; it is told later");
    isLeftForLater = true;
  }

  /** Once for each outage: the next try is a second later. */
  function onFailure(error: unknown): void {
    if (!failed)
      logger.warn({ err: error }, "which keys were used was not taken by NATS; it is sent again");
    failed = true;
  }

  const telling = startInterval(tell, {
    everyMs: lookEveryMs,
    isExpected: isBrokerAway,
    onFailure,
  });
  return {
    async stop() {
      await telling.stop();
      await tell().catch((error: unknown) => {
        logger.warn({ err: error }, "which keys were used at the end could not be told");
      });
    },
  };
}
