import { describe, expect, it } from "@jest/globals";
import { createRestartPolicy } from "../src/restart-policy.ts";

describe("given a limit of five deaths in a minute", () => {
  it("doubles the delay with each death, and gives up at the fifth", () => {
    const policy = createRestartPolicy(5);
    const delays = [0, 1, 2, 3, 59_999].map((nowMs) => policy.delayAfterDeath(nowMs));
    expect(delays).toEqual([250, 500, 1000, 2000, undefined]);
  });

  it("forgets deaths that are a minute old", () => {
    const policy = createRestartPolicy(5);
    const delays = [0, 1, 2, 3, 60_000, 60_001].map((nowMs) => policy.delayAfterDeath(nowMs));
    expect(delays).toEqual([250, 500, 1000, 2000, 2000, 2000]);
  });
});
