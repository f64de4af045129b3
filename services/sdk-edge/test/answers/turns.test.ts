import { describe, expect, it } from "@jest/globals";
import { createTurns } from "../../src/answers/turns.ts";

/** Adds pieces of work of organizations. Returns the order of their starts after each of them has ended. */
async function orderOf(organizations: readonly string[], failing?: string): Promise<string[]> {
  const turns = createTurns();
  const started: string[] = [];
  let running = 0;
  const results = organizations.map((organization) =>
    turns.take(organization, async () => {
      running += 1;
      expect(running).toBe(1);
      started.push(organization);
      await Promise.resolve();
      running -= 1;
      if (organization === failing) throw new Error("failed");
    }),
  );
  await Promise.allSettled(results);
  return started;
}

describe("given work of several organizations", () => {
  it("does one piece at a time, of each organization in turn", async () => {
    expect(await orderOf(["a", "a", "a", "a", "b", "c", "b"])).toEqual([..."aabcaba"]);
  });

  it("continues after a failure", async () => {
    expect(await orderOf(["a", "b", "a"], "a")).toEqual([..."aba"]);
  });
});
