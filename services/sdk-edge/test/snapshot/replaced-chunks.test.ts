import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { createReplacedChunks, type ReplacedChunks } from "../../src/snapshot/replaced-chunks.ts";
import { buildSnapshot, takeEntries } from "../../src/snapshot/snapshot.ts";
import { chunkEntry, deletedChunk, id, sha256Of } from "../builders.ts";

const mebibyte = 1024 * 1024;
let nowMs = 0;
let replaced: ReplacedChunks;
beforeEach(() => {
  jest.useFakeTimers();
  nowMs = 0;
  replaced = createReplacedChunks(() => nowMs);
});
afterEach(() => {
  replaced.stop();
  jest.useRealTimers();
});

/** Replaces chunks of these sizes, one after the other. Returns the names of those that are found. */
function replace(sizes: readonly number[]): (index: number) => boolean {
  const chunks = sizes.map((size, index) => chunkEntry(Buffer.alloc(size, index)));
  const snapshot = buildSnapshot(id("epoch"), chunks);
  for (const chunk of chunks)
    replaced.follow(takeEntries(snapshot, [deletedChunk(chunk, 2)]).removedChunks);
  const names = chunks.map(sha256Of);
  return (index) => replaced.find(id("audience"), names[index] ?? "") !== undefined;
}

describe("given replaced chunks", () => {
  it("finds them for a minute, and then has no timer", () => {
    const isFound = replace([8]);
    nowMs = 59_999;
    expect(isFound(0)).toBe(true);
    nowMs = 60_000;
    expect(isFound(0)).toBe(false);
    expect(jest.getTimerCount()).toBe(1);
    jest.advanceTimersByTime(60_000);
    expect(jest.getTimerCount()).toBe(0);
  });

  it("keeps the newest 8 MiB of an audience", () => {
    const isFound = replace([4 * mebibyte, 4 * mebibyte, 8]);
    expect([0, 1, 2].map(isFound)).toEqual([false, true, true]);
  });
});
