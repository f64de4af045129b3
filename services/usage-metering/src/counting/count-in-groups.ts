import { retry } from "@halyard/timing";

/**
 * Counts messages in groups. All edges add to the same few rows, and a row is locked until its transaction is on disk.
 * Messages that arrive during a transaction therefore share the next one. During an outage the group waits here,
 * because all messages behind it would fail as well.
 */
type CountInGroups<Message> = {
  add(message: Message, bytes: number): Promise<void>;
  /** Rejects messages that cannot be counted because of an outage, instead of waiting. */
  stopWaiting(): void;
};

/** Bounds of a transaction. */
const maxMessages = 256;
const maxBytes = 1024 * 1024;
const backoff = { firstMs: 250, maxMs: 250 };

type Waiting<Message> = {
  message: Message;
  bytes: number;
  resolve(): void;
  reject(error: unknown): void;
};

export function createCountInGroups<Message>(options: {
  /** Counts messages together, all or none. */
  count(messages: readonly Message[]): Promise<void>;
  isOutage(error: unknown): boolean;
  /** Called once for each outage. */
  onOutage(error: unknown): void;
}): CountInGroups<Message> {
  const waiting: Waiting<Message>[] = [];
  let isRunning = false;
  let mayWait = true;

  async function run(): Promise<void> {
    isRunning = true;
    while (waiting.length > 0) await settle(nextGroup());
    isRunning = false;
  }

  function nextGroup(): Waiting<Message>[] {
    let bytes = 0;
    const tooMany = waiting.findIndex((one, index) => {
      bytes += one.bytes;
      return index > 0 && bytes > maxBytes;
    });
    return waiting.splice(0, tooMany < 0 ? maxMessages : Math.min(tooMany, maxMessages));
  }

  async function settle(group: readonly Waiting<Message>[]): Promise<void> {
    try {
      const messages = group.map(({ message }) => message);
      await retry(() => options.count(messages), { backoff, onFailure });
      for (const { resolve } of group) resolve();
    } catch (error) {
      // A message that cannot be counted must not prevent the others from being counted.
      if (group.length > 1 && !options.isOutage(error))
        for (const one of group) await settle([one]);
      else for (const { reject } of group) reject(error);
    }
  }

  function onFailure(error: unknown, failures: number): void {
    if (!options.isOutage(error) || !mayWait) throw error;
    if (failures === 1) options.onOutage(error);
  }

  return {
    add: (message, bytes) =>
      new Promise((resolve, reject) => {
        waiting.push({ message, bytes, resolve, reject });
        if (!isRunning) void run();
      }),
    stopWaiting() {
      mayWait = false;
    },
  };
}
