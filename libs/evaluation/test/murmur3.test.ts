import { describe, expect, it } from "@jest/globals";
import { murmur3 } from "../src/murmur3.ts";

const bytesOf = (text: string) => new TextEncoder().encode(text);

describe("given texts with published hashes", () => {
  // https://en.wikipedia.org/wiki/MurmurHash, section "Test vectors".
  it.each([
    ["", 0, 0],
    ["", 1, 0x514e28b7],
    ["", 0xffffffff, 0x81f16f39],
    ["test", 0, 0xba6bd213],
    ["test", 0x9747b28c, 0x704b81dc],
    ["Hello, world!", 0, 0xc0363e43],
    ["Hello, world!", 0x9747b28c, 0x24884cba],
    ["The quick brown fox jumps over the lazy dog", 0, 0x2e4ff723],
    ["The quick brown fox jumps over the lazy dog", 0x9747b28c, 0x2fa826cd],
  ])("hashes %j with seed %i as published", (text, seed, expected) => {
    expect(murmur3(bytesOf(text), seed)).toBe(expected);
  });
});

describe("given the verification procedure of the author's test suite", () => {
  // SMHasher, main.cpp: g_hashes, "Murmur3A", "MurmurHash3 for x86, 32-bit", 0xB0F57EE3; KeysetTest.cpp.
  it("returns the published verification value", () => {
    const hashes = new Uint8Array(1024);
    const key = new Uint8Array(256);
    for (let length = 0; length < 256; length++) {
      key[length] = length;
      const hash = murmur3(key.subarray(0, length), 256 - length);
      new DataView(hashes.buffer).setUint32(length * 4, hash, true);
    }
    expect(murmur3(hashes, 0)).toBe(0xb0f57ee3);
  });

  it("hashes an array of numbers like a byte array", () => {
    expect(murmur3([...bytesOf("test")])).toBe(0xba6bd213);
  });
});
