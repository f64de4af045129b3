import { createLastUsed } from "@halyard/api-keys";
import { describe, expect, it } from "@jest/globals";

const max = 100;

describe("given a key that is used for the first time", () => {
  it("is returned once, with its latest use", () => {
    const lastUsed = createLastUsed();
    for (const atMs of [10, 30, 20]) lastUsed.note("a", atMs);
    expect(lastUsed.take(0, max)).toEqual([{ keyId: "a", atMs: 30 }]);
    expect(lastUsed.take(0, max)).toEqual([]);
  });
});

describe("given a key that is used continuously", () => {
  it("is returned again after five seconds, and not before", () => {
    const lastUsed = createLastUsed();
    lastUsed.note("a", 10);
    lastUsed.take(1_000, max);
    lastUsed.note("a", 20);
    expect(lastUsed.take(5_999, max)).toEqual([]);
    lastUsed.note("a", 30);
    expect(lastUsed.take(6_000, max)).toEqual([{ keyId: "a", atMs: 30 }]);
  });

  it("does not delay the first use of another key", () => {
    const lastUsed = createLastUsed();
    lastUsed.note("a", 10);
    lastUsed.take(1_000, max);
    lastUsed.note("a", 20);
    lastUsed.note("b", 20);
    expect(lastUsed.take(2_000, max)).toEqual([{ keyId: "b", atMs: 20 }]);
  });
});

describe("given a key that is not used any more", () => {
  it("is not returned again", () => {
    const lastUsed = createLastUsed();
    lastUsed.note("a", 10);
    lastUsed.take(0, max);
    expect(lastUsed.take(60_000, max)).toEqual([]);
  });
});

describe("given many keys", () => {
  it("returns at most the requested number, and the others the next time", () => {
    const lastUsed = createLastUsed();
    for (const keyId of ["a", "b", "c"]) lastUsed.note(keyId, 10);
    expect(lastUsed.take(0, 2)).toHaveLength(2);
    expect(lastUsed.take(0, 2)).toEqual([{ keyId: "c", atMs: 10 }]);
  });

  it("keeps at most its maximum number of keys, with their latest use", () => {
    const lastUsed = createLastUsed({ maxKeys: 2 });
    for (const keyId of ["a", "b", "c"]) lastUsed.note(keyId, 10);
    lastUsed.note("a", 20);
    expect(lastUsed.take(0, max)).toEqual([
      { keyId: "a", atMs: 20 },
      { keyId: "b", atMs: 10 },
    ]);
  });
});
