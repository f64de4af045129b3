import { describe, expect, it } from "@jest/globals";
import { createPace } from "../../src/snapshot/snapshot-holder.ts";

describe("the pace at which changes are applied", () => {
  it("pauses three times as long as the work took, up to 500 ms", () => {
    let elapsedMs = 1_000;
    const pace = createPace(() => elapsedMs);
    expect(pace.pauseMs()).toBe(0);
    pace.addWork(10);
    expect(pace.pauseMs()).toBe(30);
    elapsedMs += 20;
    expect(pace.pauseMs()).toBe(10);
    elapsedMs += 20;
    expect(pace.pauseMs()).toBe(0);
    pace.addWork(150);
    expect(pace.pauseMs()).toBe(450);
    pace.addWork(5_000);
    expect(pace.pauseMs()).toBe(500);
  });
});
