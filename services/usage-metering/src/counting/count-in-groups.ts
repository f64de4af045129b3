import type { UsageRecorded } from "@halyard/contracts";
import { retry } from "@halyard/timing";

/**
 * Counts in groups. All edges add to the same few rows, those of organizations, environments and hours,
 * and a row is locked until its transaction has been written to disk. With a transaction for each message
 * they would go one by one; so the messages that have come while a transaction was under way share the
 * next one. When few come, each has its own at once.
 *
 * An outage is waited for here, by the group that met it: everything behind it would meet it too.
 */
export type CountInGroups = {
  /** Resolves when the message has been counted. */
  add(message: UsageRecorded, bytes: number): Promise<void>;
  /** Waits for no outage any more: what cannot be counted now is told so. */
  stopWaiting(): void;
};

/** What adds up in one transaction is bounded by what it is made of. */
const mostMessages = 256;
const mostBytes = 1024 * 1024;
const backoff = { firstMs: 250, mostMs: 250 };

type Waiting = {
  message: UsageRecorded;
  bytes: number;
  resolve(): void;
  reject(error: unknown): void;
};

export function createCountInGroups(options: {
  /** Counts messages together, all or none. */
  count(messages: readonly UsageRecorded[]): Promise<void>;
  isOutage(error: unknown): boolean;
  /** Told once of each outage that is waited for. */
  onOutage(error: unknown): void;
}): CountInGroups {
  const waiting: Waiting[] = [];
  let running = false;
  let mayWait = true;

  async function run(): Promise<void> {
    running = true;
    while (waiting.length > 0) await settle(nextGroup());
    running = false;
  }

  function nextGroup(): Waiting[] {
    let bytes = 0;
    const tooMany = waiting.findIndex((one, index) => {
      bytes += one.bytes;
      return index > 0 && bytes > mostBytes;
    });
    return waiting.splice(0, tooMany < 0 ? mostMessages : Math.min(tooMany, mostMessages));
  }

  async function settle(group: readonly Waiting[]): Promise<void> {
    try {
      await countWhenPossible(group.map(({ message }) => message));
      for (const { resolve } of group) resolve();
    } catch (error) {
      // A message that cannot be counted must not keep those beside it from being counted.
      if (group.length > 1 && !options.isOutage(error))
        for (const one of group) await settle([one]);
      else for (const { reject } of group) reject(error);
    }
  }

  const countWhenPossible = (messages: readonly UsageRecorded[]) =>
    retry(() => options.count(messages), {
      backoff,
      onFailure(error, failures) {
        if (!options.isOutage(error) || !mayWait) throw error;
        if (failures === 1) options.onOutage(error);
      },
    });

  return {
    add: (message, bytes) =>
      new Promise((resolve, reject) => {
        waiting.push({ message, bytes, resolve, reject });
        if (!running) void run();
      }),
    stopWaiting() {
      mayWait = false;
    },
  };
}
