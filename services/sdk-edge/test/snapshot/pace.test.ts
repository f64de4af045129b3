import { describe, expect, it } from "@jest/globals";
import { createPace } from "../../src/snapshot/pace.ts";

describe("the pace at which changes are taken", () => {
  it("rests three times as long as the work took, and not for long", () => {
    let elapsedMs = 1_000;
    const pace = createPace(() => elapsedMs);
    expect(pace.restMs()).toBe(0);
    pace.worked(10);
    expect(pace.restMs()).toBe(30);
    elapsedMs += 20;
    expect(pace.restMs()).toBe(10);
    elapsedMs += 20;
    expect(pace.restMs()).toBe(0);
    pace.worked(150);
    expect(pace.restMs()).toBe(450);
    pace.worked(5_000);
    expect(pace.restMs()).toBe(500);
  });
});
