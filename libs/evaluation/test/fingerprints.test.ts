import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { type AudienceList, bytesOfHex, compileMembership, SipHash } from "../src/index.ts";
import { averageCpuMs } from "./cpu-time.ts";
import { chunksByReference, fingerprintByReference } from "./reference-fingerprints.ts";
import { runs } from "./thorough.ts";

const key = "000102030405060708090a0b0c0d0e0f";

function hexOf(text: string, by = key): string {
  const hash = new SipHash(bytesOfHex(by));
  hash.hash(text);
  return [hash.high, hash.low].map((half) => half.toString(16).padStart(8, "0")).join("");
}

function listOf(members: readonly string[], bits: number) {
  const chunks = chunksByReference(key, members, bits);
  const list: AudienceList = {
    ...{ attribute: "id", count: members.length, key },
    chunks: chunks.map(() => "0".repeat(64)),
  };
  return { list, chunks };
}

describe("SipHash-2-4", () => {
  /** The outputs in the reference implementation (github.com/veorq/SipHash, `vectors_sip64`), as integers. */
  const published = [
    ...["726fdb47dd0e0e31", "74f839c593dc67fd", "0d6c8009d9a94f5a", "85676696d7fb7e2d"],
    ...["cf2794e0277187b7", "18765564cd99a68d", "cbc9466e58fee3ce", "ab0200f58b01d137"],
    ...["93f5f5799a932462", "9e0082df0ba9e4b0", "7a5dbbc594ddb9f3", "f4b32f46226bada7"],
    ...["751e8fbc860ee5fb", "14ea5627c0843d90", "f723ca908e7af2ee", "a129ca6149be45e5"],
  ];

  it.each(published.map((hash, length) => [length, hash] as const))(
    "of %d bytes returns the published %s",
    (length, hash) => {
      const text = String.fromCharCode(...Array.from({ length }, (_, index) => index));
      expect(hexOf(text)).toBe(hash);
      expect(fingerprintByReference(key, text)).toBe(BigInt(`0x${hash}`));
    },
  );

  it("hashes the UTF-8 bytes of any text with any key like the reference", () => {
    const texts = fc.oneof(
      fc.string({ unit: "binary" }),
      fc.string(),
      fc.string({ minLength: 60 }),
    );
    const keys = fc.stringMatching(/^[0-9a-f]{32}$/);
    fc.assert(
      fc.property(texts, keys, (text, by) => {
        expect(BigInt(`0x${hexOf(text, by)}`)).toBe(fingerprintByReference(by, text));
      }),
      { numRuns: runs(3_000) },
    );
  });

  it("hashes a text of a megabyte, also beyond ASCII, in linear time", () => {
    for (const text of ["a".repeat(1e6), "é".repeat(5e5)])
      expect(BigInt(`0x${hexOf(text)}`)).toBe(fingerprintByReference(key, text));
  });

  it("rejects a key of another length", () => {
    expect(() => new SipHash(new Uint8Array(15))).toThrow(RangeError);
  });
});

describe("the membership in a list", () => {
  it("is that of the entries, with any number of chunks", () => {
    const entries = fc.array(fc.string({ unit: "grapheme", minLength: 1, maxLength: 20 }), {
      maxLength: 200,
      size: "max",
    });
    fc.assert(
      fc.property(entries, fc.integer({ min: 0, max: 6 }), fc.string(), (members, bits, other) => {
        const { list, chunks } = listOf(members, bits);
        const has = compileMembership(list, chunks);
        for (const member of members) expect(has(member)).toBe(true);
        expect(has(other)).toBe(members.includes(other));
        expect(has(`${members[0]}x`)).toBe(members.includes(`${members[0]}x`));
      }),
      { numRuns: runs(500) },
    );
  });

  it("finds entries in bytes that begin anywhere in a buffer", () => {
    const bytes = Buffer.from(`ff${["0".repeat(16), hexOf("user-1")].join("")}`, "hex").subarray(1);
    const has = compileMembership(listOf([], 0).list, [bytes]);
    expect([has("user-1"), has("user-2")]).toEqual([true, false]);
  });

  it.each([
    ["no chunk", listOf([], 0).list, []],
    ["an empty chunk", listOf([], 0).list, [new Uint8Array()]],
    ["a number of chunks that is no power of two", listOf([], 0).list, chunksOf(3)],
    ["a key of another length", { ...listOf([], 0).list, key: "00" }, chunksOf(1)],
    ["no key", { ...listOf([], 0).list, key: undefined as unknown as string }, chunksOf(1)],
  ])("is false with %s", (_, list, chunks) => {
    expect(compileMembership(list, chunks)("user-1")).toBe(false);
  });

  it("ignores bytes after the last whole fingerprint", () => {
    const { list } = listOf([], 0);
    const bytes = Buffer.from(`${hexOf("user-1")}ffffff`, "hex");
    const has = compileMembership(list, [bytes]);
    expect([has("user-1"), has("user-2")]).toEqual([true, false]);
  });

  it("does not read all of thousands of fingerprints that begin alike", () => {
    const hexes = new Map(
      Array.from({ length: 50_000 }, (_, index) => [`user-${index}`, hexOf(`user-${index}`)]),
    );
    // One user of 16,384, in the same slot as the others.
    const members = [...hexes].filter(([, hex]) => /^000[0-3]/.test(hex)).map(([text]) => text);
    const others = Array.from({ length: 65_000 }, (_, index) =>
      index.toString(16).padStart(16, "0"),
    );
    const sorted = [...members.map((text) => hexes.get(text)), ...others].sort();
    const has = compileMembership(listOf([], 0).list, [Buffer.from(sorted.join(""), "hex")]);
    expect([...hexes.keys()].filter(has)).toEqual(members);
    const searchAll = () => members.every(has);
    expect(searchAll()).toBe(true);
    // Each search takes 0.2 ms if it reads all of them.
    expect(averageCpuMs(searchAll) / members.length).toBeLessThan(0.02);
  });

  it("takes about as long in a list of 100,000 entries as in one of 1,000", () => {
    const [short, long] = [1_000, 100_000].map((count) => {
      const sorted = Array.from({ length: count }, (_, index) => hexOf(`user-${index}`)).sort();
      return compileMembership(listOf([], 0).list, [Buffer.from(sorted.join(""), "hex")]);
    });
    const search = (has = long) => {
      for (let index = 0; index < 1_000; index++) has?.(`user-${index}`);
    };
    search(long);
    search(short);
    expect(averageCpuMs(() => search(long))).toBeLessThan(10 * averageCpuMs(() => search(short)));
  });
});

function chunksOf(count: number): Uint8Array[] {
  return Array.from({ length: count }, () => Buffer.from(hexOf("user-1"), "hex"));
}
