import { setImmediate as nextTurn } from "node:timers/promises";
import { describe, expect, it } from "@jest/globals";
import { periodically } from "../src/index.ts";

const onceAnHour = 3_600_000;
const noFailures = { isExpected: () => false, onFailure: () => undefined };

describe("given work that is done periodically", () => {
  it("tells what is under way not to go on when it is stopped, and waits for it", async () => {
    let ended = false;
    const begun = Promise.withResolvers<void>();
    const working = periodically(
      1,
      async (mayGoOn) => {
        begun.resolve();
        while (mayGoOn()) await nextTurn();
        ended = true;
      },
      noFailures,
    );
    await begun.promise;
    await working.stop();
    expect(ended).toBe(true);
  });

  it("begins at the start where it is asked to", async () => {
    let times = 0;
    const work = async () => {
      times += 1;
    };
    const later = periodically(onceAnHour, work, noFailures);
    expect(times).toBe(0);
    const atOnce = periodically(onceAnHour, work, { ...noFailures, beginsAtOnce: true });
    expect(times).toBe(1);
    await Promise.all([later.stop(), atOnce.stop()]);
  });

  it("tells a failure that is expected, and goes on at its time", async () => {
    const failures: unknown[] = [];
    const again = Promise.withResolvers<void>();
    const outage = new Error("away");
    const working = periodically(
      1,
      async () => {
        if (failures.length > 0) return again.resolve();
        throw outage;
      },
      { isExpected: (error) => error === outage, onFailure: (error) => failures.push(error) },
    );
    await again.promise;
    await working.stop();
    expect(failures).toEqual([outage]);
  });
});
