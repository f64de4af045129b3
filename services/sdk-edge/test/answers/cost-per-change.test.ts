import { call } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../builders.ts";
import { startEdgeServer } from "../edge-server.ts";

/** Number of changes. The fastest one counts, because other processes use the machine too. */
const changes = 50;

async function quickestChangeMs(flagCount: number): Promise<number> {
  const key = apiKey();
  const flags = Array.from({ length: flagCount }, (_, number) => flag(number, 1));
  const edge = await startEdgeServer([key.entry, ...flags]);
  // The first request makes the edge prepare the environment.
  await call(`${edge.url}/api/v1/sdk/flags`, { key: key.text });
  let quickestMs = Number.POSITIVE_INFINITY;
  for (let version = 2; version < 2 + changes; version += 1) {
    const began = performance.now();
    await edge.feed(flag(version * 17, version));
    quickestMs = Math.min(quickestMs, performance.now() - began);
  }
  await edge.stop();
  return quickestMs;
}

function flag(number: number, version: number) {
  const key = `flag-${number}`;
  return flagEntry({ flag_id: id("flag", number), key, version, enabled: version % 2 === 0 });
}

describe("given a change of one flag", () => {
  it("takes at most five times as long for twenty times as many flags", async () => {
    const few = await quickestChangeMs(1_000);
    const many = await quickestChangeMs(20_000);
    expect(many / few).toBeLessThan(5);
  });
});
