import { setTimeout as delay } from "node:timers/promises";

const TIMEOUT_MS = 20_000;
const POLL_INTERVAL_MS = 20;

/** Waits until the condition is true, and throws after a time-out. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>) {
  const deadline = Date.now() + TIMEOUT_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${TIMEOUT_MS} ms: ${what}`);
    await delay(POLL_INTERVAL_MS);
  }
}
