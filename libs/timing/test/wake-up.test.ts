import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createWakeUp } from "../src/index.ts";

beforeEach(() => void jest.useFakeTimers());
afterEach(() => void jest.useRealTimers());

const forHours = 10 * 3_600_000;

/** Returns whether the sleep is over after all ready callbacks have run. */
async function isOver(sleeping: Promise<void>): Promise<boolean> {
  let over = false;
  void sleeping.then(() => {
    over = true;
  });
  await jest.advanceTimersByTimeAsync(0);
  return over;
}

describe("given a wake-up", () => {
  it("ends a sleep when there is work", async () => {
    const wakeUp = createWakeUp();
    const sleeping = wakeUp.sleep(forHours);
    wakeUp.wake();
    await sleeping;
    expect(jest.getTimerCount()).toBe(0);
  });

  it("ends a sleep after its time", async () => {
    const sleeping = createWakeUp().sleep(100);
    await jest.advanceTimersByTimeAsync(99);
    expect(await isOver(sleeping)).toBe(false);
    await jest.advanceTimersByTimeAsync(1);
    expect(await isOver(sleeping)).toBe(true);
  });

  it("ends only the next sleep when there was work meanwhile", async () => {
    const wakeUp = createWakeUp();
    wakeUp.wake();
    wakeUp.wake();
    await wakeUp.sleep(forHours);
    const sleeping = wakeUp.sleep(forHours);
    expect(await isOver(sleeping)).toBe(false);
    wakeUp.wake();
    expect(await isOver(sleeping)).toBe(true);
  });

  it("ends a sleep, and every later one, when its signal is aborted", async () => {
    const wakeUp = createWakeUp();
    const stopping = new AbortController();
    const sleeping = wakeUp.sleep(forHours, stopping.signal);
    stopping.abort();
    await sleeping;
    await wakeUp.sleep(forHours, stopping.signal);
    expect(jest.getTimerCount()).toBe(0);
  });
});
