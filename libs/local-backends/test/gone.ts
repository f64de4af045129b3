import { setTimeout as delay } from "node:timers/promises";
import { identifyProcess } from "../src/index.ts";

const PATIENCE_MS = 20_000;
const LOOK_EVERY_MS = 20;

/** Waits until the condition holds; fails when it does not within a time that is ample for all. */
export async function eventually(what: string, condition: () => boolean | Promise<boolean>) {
  const deadline = Date.now() + PATIENCE_MS;
  while (!(await condition())) {
    if (Date.now() > deadline) throw new Error(`not within ${PATIENCE_MS} ms: ${what}`);
    await delay(LOOK_EVERY_MS);
  }
}

export function isRunning(pid: number): boolean {
  return identifyProcess(pid) !== undefined;
}
