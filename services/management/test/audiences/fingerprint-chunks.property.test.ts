import { maxChunkBytes } from "@halyard/contracts";
import { seededRandom } from "@halyard/testing";
import { describe, expect, it } from "@jest/globals";
import {
  changeChunk,
  changesByChunk,
  divide,
  type FingerprintChange,
  FingerprintList,
  keepsDivision,
} from "../../src/audiences/fingerprint-chunks.ts";

const random = seededRandom();
const word = () => Math.floor(random() * 2 ** 32);

function sortedOf(fingerprints: Iterable<bigint>): Buffer {
  const list = new FingerprintList();
  for (const each of fingerprints) list.add(Number(each >> 32n), Number(each & 0xffffffffn));
  return list.sorted();
}

const fingerprint = () => (BigInt(word()) << 32n) | BigInt(word());

/** Applies changes to chunks as a change of a list does. */
function change(chunks: readonly Buffer[], changes: readonly FingerprintChange[]): Buffer[] {
  const given = chunks.length === 0 ? [Buffer.alloc(0)] : chunks;
  const byChunk = changesByChunk(changes, given.length);
  const changed = given.map((chunk, index) => changeChunk(chunk, byChunk.get(index) ?? []));
  if (keepsDivision(changed.map(({ length }) => length))) return changed;
  return divide(Buffer.concat(changed)) ?? [];
}

/** Expects that each chunk fits and has the fingerprints of its index, and that there are few chunks. */
function expectValid(chunks: readonly Buffer[]): void {
  const bits = Math.log2(chunks.length);
  expect(chunks.length === 0 || Number.isInteger(bits)).toBe(true);
  for (const [index, chunk] of chunks.entries()) {
    expect(chunk.length).toBeLessThanOrEqual(maxChunkBytes);
    for (const at of chunk.length === 0 ? [] : [0, chunk.length - 8])
      expect(Number(chunk.readBigUInt64BE(at) >> BigInt(64 - bits))).toBe(index);
  }
  const fewest = divide(Buffer.concat(chunks))?.length ?? 0;
  expect([fewest, fewest * 2]).toContain(chunks.length);
}

describe("the chunks of a list", () => {
  it("are those of a list that is divided from scratch, after any changes", () => {
    const present = new Set<bigint>();
    let chunks: Buffer[] = [];
    for (let round = 0; round < 12; round += 1) {
      const grows = random() < 0.6;
      const size = Math.floor(random() * (grows ? 60_000 : 30_000));
      const asked = new Set(
        Array.from({ length: size }, fingerprint).concat([...present].slice(0, grows ? 10 : size)),
      );
      const changes = [...asked].map((each): FingerprintChange => [each, grows]);
      for (const [each, isPresent] of changes)
        if (isPresent) present.add(each);
        else present.delete(each);
      chunks = change(chunks, changes);
      expectValid(chunks);
      expect(Buffer.concat(chunks).equals(sortedOf(present))).toBe(true);
    }
  }, 30_000);

  it("become none when the last entry is removed", () => {
    const one = fingerprint();
    const chunks = change([], [[one, true]]);
    expect(chunks.map(({ length }) => length)).toEqual([8]);
    expect(change(chunks, [[one, false]])).toEqual([]);
  });

  it("are not divided again at a border that a list crosses in both directions", () => {
    const full = Array.from({ length: maxChunkBytes / 8 }, fingerprint);
    const more = fingerprint();
    const one = divide(sortedOf(full)) ?? [];
    const two = change(one, [[more, true]]);
    expect([one.length, two.length, change(two, [[more, false]]).length]).toEqual([1, 2, 2]);
  });
});

describe("fingerprints", () => {
  it("are sorted as unsigned integers, each once, in big-endian bytes", () => {
    const given = [2n ** 63n, 1n, 2n ** 64n - 1n, 2n ** 32n, 1n, 0n];
    expect(sortedOf(given).toString("hex").match(/.{16}/g)).toEqual([
      "0000000000000000",
      "0000000000000001",
      "0000000100000000",
      "8000000000000000",
      "ffffffffffffffff",
    ]);
  });

  it("cannot be divided if too many begin alike", () => {
    const alike = Array.from({ length: maxChunkBytes / 8 + 1 }, (_, index) => BigInt(index));
    expect(divide(sortedOf(alike))).toBeUndefined();
  });
});
