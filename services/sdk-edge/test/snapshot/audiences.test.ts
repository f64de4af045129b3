import { mkdtemp, rm, stat } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { SnapshotEntry } from "@halyard/contracts";
import { describe, expect, it } from "@jest/globals";
import fc from "fast-check";
import { AudienceChunk } from "../../src/snapshot/audience-chunk.ts";
import { readCacheFile, writeCacheFile } from "../../src/snapshot/cache-file.ts";
import { beginFullRead } from "../../src/snapshot/replace.ts";
import {
  buildSnapshot,
  changedBetween,
  countEntries,
  countListEntries,
  entriesOf,
  existingChunk,
  isNothing,
  type Snapshot,
  takeEntries,
} from "../../src/snapshot/snapshot.ts";
import {
  audienceEntry,
  deletedAudience,
  deletedChunk,
  id,
  listedAudience,
  sha256Of,
} from "../builders.ts";

const epoch = id("epoch");
const { audience, chunks } = listedAudience(["u1", "u2", "u3"]);
const [chunk] = chunks as [(typeof chunks)[number]];
const chunkIn = (snapshot: Snapshot) => existingChunk(snapshot, id("audience"), sha256Of(chunk));

/** A copy, because each entry that is received is parsed again. */
const received = (entry: SnapshotEntry): SnapshotEntry => JSON.parse(JSON.stringify(entry));

describe("given entries of an audience and its list", () => {
  it("reports the audience as changed by its own entry and by each chunk", () => {
    const snapshot = buildSnapshot(epoch, []);
    for (const entry of [chunk, audience, deletedChunk(chunk, 2), audienceEntry({ version: 2 })])
      expect(takeEntries(snapshot, [entry]).changed.audiences).toEqual(new Set([id("audience")]));
    expect(isNothing(takeEntries(snapshot, [chunk, audience]).changed)).toBe(true);
  });

  it("keeps the bytes of a chunk, and not its text", () => {
    const held = chunkIn(buildSnapshot(epoch, [received(chunk)]));
    expect(held?.bytes).toHaveLength(3 * 8);
    expect(Object.values(held ?? {}).filter((value) => typeof value === "string")).not.toContain(
      held?.data,
    );
  });

  it("keeps no deletion of a chunk, and ignores its earlier entry once the audience lacks it", () => {
    const snapshot = buildSnapshot(epoch, [chunk, audience]);
    takeEntries(snapshot, [deletedChunk(chunk, 2)]);
    expect(snapshot.chunks.size).toBe(0);
    takeEntries(snapshot, [chunk]);
    takeEntries(snapshot, [audienceEntry({ version: 2 })]);
    expect(snapshot.chunks.size).toBe(0);
    takeEntries(snapshot, [chunk]);
    expect(chunkIn(snapshot)).toBeUndefined();
    const again = { ...chunk, value: { ...chunk.value, version: 3 } } as SnapshotEntry;
    takeEntries(snapshot, [again, deletedChunk(chunk, 2)]);
    expect(chunkIn(snapshot)).toBeDefined();
  });

  it("keeps nothing of the list of a deleted audience", () => {
    const snapshot = buildSnapshot(epoch, [chunk, audience]);
    takeEntries(snapshot, [deletedAudience(2), deletedChunk(chunk, 2), chunk]);
    expect(snapshot.chunks.size).toBe(0);
  });

  it("keeps the chunks of an audience that it does not know, until their deletion", () => {
    const snapshot = buildSnapshot(epoch, [chunk, audience]);
    takeEntries(snapshot, [audienceEntry({ needs: ["moon"], version: 2 })]);
    expect(chunkIn(snapshot)).toBeDefined();
    takeEntries(snapshot, [deletedChunk(chunk, 3)]);
    expect(chunkIn(snapshot)).toBeUndefined();
  });

  it("counts audiences, chunks and the entries of lists", () => {
    const snapshot = buildSnapshot(epoch, [chunk, audience]);
    expect(countEntries(snapshot)).toMatchObject({ audience: 1, chunk: 1, deleted: 0 });
    expect(countListEntries(snapshot)).toBe(3);
    takeEntries(snapshot, [deletedAudience(2), deletedChunk(chunk, 2)]);
    expect(countEntries(snapshot)).toMatchObject({ audience: 0, chunk: 0, deleted: 1 });
    expect(countListEntries(snapshot)).toBe(0);
    expect(snapshot.audienceIds.get(id("project"))?.size).toBe(0);
  });
});

describe("given a full read of the entries that the edge holds", () => {
  it("keeps the objects, so that nothing is prepared again", () => {
    const held = buildSnapshot(epoch, [chunk, audience]);
    const before = chunkIn(held);
    const read = beginFullRead(held);
    for (const entry of [audience, chunk]) read.take(received(entry));
    const { snapshot, changed } = read.finish(held, {
      epoch: id("epoch", 2),
      followedUntilNow: true,
    });
    expect(isNothing(changed)).toBe(true);
    expect(chunkIn(snapshot)).toBe(before);
  });

  it("reports a chunk and an audience that are missing after a gap", () => {
    const held = buildSnapshot(epoch, [chunk, audience]);
    for (const kept of [[audience], [chunk], []])
      expect(changedBetween(held, buildSnapshot(epoch, kept)).audiences).toEqual(
        new Set([id("audience")]),
      );
  });
});

describe("given the same entries in any order", () => {
  const entry = fc
    .record({
      version: fc.integer({ min: 1, max: 8 }),
      number: fc.integer({ min: 1, max: 2 }),
      kind: fc.constantFrom("audience", "deleted", "chunk"),
    })
    .map(({ version, number, kind }): SnapshotEntry[] => {
      const fields = { audience_id: id("audience", number), version };
      const [one] = listedAudience(["u1"], fields).chunks as [(typeof chunks)[number]];
      if (kind === "chunk") return [one];
      // No audience names the chunk, so each change of one comes with its deletion.
      const audience =
        kind === "audience" ? audienceEntry(fields) : deletedAudience(version, fields.audience_id);
      return [audience, deletedChunk(one, version)];
    });
  const entries = fc
    .uniqueArray(entry, {
      maxLength: 20,
      selector: ([one]) => JSON.stringify([one?.address, one?.value.version]),
    })
    .map((changes) => changes.flat());

  it("results in the same snapshot, also after it was written to disk", () => {
    const shuffled = entries.chain((given) =>
      fc.tuple(fc.constant(given), fc.shuffledSubarray(given, { minLength: given.length })),
    );
    fc.assert(
      fc.property(shuffled, ([given, mixed]) => {
        const oneByOne = buildSnapshot(epoch, []);
        for (const one of mixed) takeEntries(oneByOne, [received(one)]);
        const whole = buildSnapshot(epoch, given);
        expect(textsOf(oneByOne)).toEqual(textsOf(whole));
        expect(textsOf(buildSnapshot(epoch, [...entriesOf(oneByOne)].map(received)))).toEqual(
          textsOf(whole),
        );
        expect(sorted(oneByOne.audienceIds)).toEqual(sorted(whole.audienceIds));
      }),
    );
  });

  const textsOf = (snapshot: Snapshot) =>
    [...entriesOf(snapshot)].map((one) => JSON.stringify(one)).sort();
  const sorted = (ids: Snapshot["audienceIds"]) =>
    [...ids]
      .map(([project, each]) => [project, [...each].sort()])
      .filter(([, each]) => each?.length);
});

describe("given a cache file with a list of a million entries", () => {
  it("has the list again, as bytes that take 8 MB", async () => {
    const count = 1_000_000;
    const large = Array.from({ length: 16 }, (_, index) => largeChunk(index, count / 16));
    const directory = await mkdtemp(join(tmpdir(), "halyard-audiences-"));
    try {
      const file = join(directory, "cache");
      const snapshot = buildSnapshot(epoch, [...large, audience]);
      await writeCacheFile(file, { snapshot, revision: 7, currentAtMs: 1_000 });
      expect((await stat(file)).size).toBeLessThan(1.4 * 8 * count);
      const reading = await readCacheFile(file, () => true);
      if (!reading.found) throw new Error(reading.problem);
      // The reader decodes each chunk, so that its texts are never in memory together.
      const values = reading.entries.map(({ value }) => value);
      const read = values.filter((value) => value instanceof AudienceChunk);
      expect(read).toHaveLength(large.length);
      const again = buildSnapshot(epoch, reading.entries);
      expect([...entriesOf(again)].map((one) => JSON.stringify(one))).toEqual(
        [...entriesOf(snapshot)].map((one) => JSON.stringify(one)),
      );
      const bytes = read.reduce((sum, { bytes }) => sum + bytes.buffer.byteLength, 0);
      expect(bytes).toBeLessThan(9_000_000);
    } finally {
      await rm(directory, { recursive: true });
    }
  });

  function largeChunk(index: number, count: number): SnapshotEntry {
    const value = {
      ...{ ...chunk.value, version: 2 },
      ...{
        sha256: String(index).padStart(64, "0"),
        data: Buffer.alloc(8 * count, index).toString("base64"),
      },
    };
    return {
      ...chunk,
      ...{ address: { ...chunk.address, sha256: value.sha256 }, value },
    } as SnapshotEntry;
  }
});
