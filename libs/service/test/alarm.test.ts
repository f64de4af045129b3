import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { createAlarm } from "../src/index.ts";

const forHours = 10 * 3_600_000;

describe("given an alarm", () => {
  it("ends the sleep when the sleeper is woken", async () => {
    const alarm = createAlarm();
    const sleeping = alarm.sleep(forHours);
    alarm.wake();
    await sleeping;
  });

  it("ends it at its time, unless somebody wakes", async () => {
    await createAlarm().sleep(1);
  });

  it("does not let one who was woken while awake sleep the next time, but the time after that", async () => {
    const alarm = createAlarm();
    alarm.wake();
    alarm.wake();
    await alarm.sleep(forHours);
    let slept = false;
    const sleeping = alarm.sleep(forHours).then(() => {
      slept = true;
    });
    await nextTurn();
    expect(slept).toBe(false);
    alarm.wake();
    await sleeping;
  });
});
