import { describe, expect, it } from "@jest/globals";
import { createReleasers } from "../src/ending.ts";

describe("given parts that were started", () => {
  it("releases them in the reverse order, even if one fails, and returns the failure", async () => {
    const releasers = createReleasers();
    const order: string[] = [];
    const failure = new Error("it would not stop");
    await releasers.add(async () => order.push("first"));
    await releasers.add(async () => Promise.reject(failure));
    await releasers.add(async () => order.push("last"));

    expect(await releasers.releaseAll()).toEqual([failure]);
    expect(order).toEqual(["last", "first"]);
  });

  it("releases a part added after the end immediately", async () => {
    const releasers = createReleasers();
    const order: string[] = [];
    await releasers.releaseAll();

    await releasers.add(async () => order.push("late"));

    expect(order).toEqual(["late"]);
  });
});
