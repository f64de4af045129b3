import { createHash, randomBytes } from "node:crypto";
import {
  mkdtemp,
  open,
  readdir,
  readFile,
  rm,
  stat,
  truncate,
  utimes,
  writeFile,
} from "node:fs/promises";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { everyEntryIsGenuine } from "@halyard/api-keys";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { type Logger, pino } from "pino";
import { readCacheFile, writeCacheFile } from "../../src/snapshot/cache-file.ts";
import { createDiskCache } from "../../src/snapshot/disk-cache.ts";
import { buildSnapshot } from "../../src/snapshot/snapshot.ts";
import { createSnapshotHolder } from "../../src/snapshot/snapshot-holder.ts";
import { apiKey, deletedFlag, flagEntry, id, organizationWith, revokedKey } from "../builders.ts";

const currentAtMs = Date.parse("2027-01-31T09:00:00.000Z");
let directory: string;
let file: string;

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), "halyard-cache-"));
  file = join(directory, "edge", "snapshot");
});
afterEach(() => rm(directory, { recursive: true, force: true }));

const awkward = flagEntry({
  flag_id: id("flag", 3),
  targeting_rules: [
    {
      conditions: [{ attribute: "name", operator: "equals", value: "line\u2028\u2029\nbreaks ⚓" }],
    },
  ],
});
const snapshot = buildSnapshot(id("epoch"), [
  ...organizationWith(),
  apiKey().entry,
  revokedKey("abcdefghijklmnop"),
  flagEntry(),
  deletedFlag(4, id("flag", 2)),
  awkward,
]);

describe("given a snapshot in a file", () => {
  beforeEach(async () => {
    file = join(directory, "snapshot");
    await writeCacheFile(file, { snapshot, revision: 42, currentAtMs });
  });

  it("reads the same snapshot, its revision, and the time at which it was current", async () => {
    const reading = await readCacheFile(file, everyEntryIsGenuine.trusts);
    const held = { epoch: snapshot.epoch, revision: 42, currentAtMs };
    expect(reading).toMatchObject({ found: true, held, currentAtMs });
    expect(reading.found && buildSnapshot(reading.epoch, reading.entries)).toEqual(snapshot);
  });

  it("has no revision to continue from if it was written with other schemas", async () => {
    const lines = (await readFile(file, "utf8")).trimEnd().split("\n").slice(0, -1);
    const header = { ...JSON.parse(lines[0] ?? ""), schemas: "others" };
    const body = [JSON.stringify(header), ...lines.slice(1), ""].join("\n");
    const sha256 = createHash("sha256").update(body).digest("hex");
    await writeFile(file, `${body}${JSON.stringify({ sha256 })}\n`);
    expect(await readCacheFile(file, everyEntryIsGenuine.trusts)).toMatchObject({
      found: true,
      held: undefined,
    });
  });

  it("uses the time in the file, not the modification time", async () => {
    await utimes(file, new Date(), new Date());
    expect(await readCacheFile(file, everyEntryIsGenuine.trusts)).toMatchObject({
      found: true,
      held: { currentAtMs },
    });
  });

  it("is rejected if this edge does not trust the signers of its keys", async () => {
    const trusts = (signer: string | undefined) => signer !== undefined;
    expect(await readCacheFile(file, trusts)).toMatchObject({
      found: false,
      problem: expect.stringContaining("SIGNING_PUBLIC_KEYS"),
    });
  });

  it("is readable only for its owner, and leaves no other files", async () => {
    expect((await stat(file)).mode & 0o777).toBe(0o600);
    expect(await readdir(directory)).toEqual(["snapshot"]);
  });

  it("treats a truncated file as damaged, at any length", async () => {
    const { size } = await stat(file);
    for (const length of [0, 1, Math.floor(size / 2), size - 66, size - 1]) {
      await truncate(file, length);
      expect(await readCacheFile(file, everyEntryIsGenuine.trusts)).toMatchObject({
        found: false,
        problem: expect.any(String),
      });
    }
  });

  it("treats a file with changed bytes as damaged", async () => {
    const bytes = await readFile(file, "latin1");
    await writeFile(file, bytes.replace('"enabled":false', '"enabled":true '));
    expect(await readCacheFile(file, everyEntryIsGenuine.trusts)).toMatchObject({
      found: false,
      problem: expect.any(String),
    });
  });

  it("treats random content as damaged", async () => {
    await writeFile(file, randomBytes(100_000));
    expect(await readCacheFile(file, everyEntryIsGenuine.trusts)).toMatchObject({
      found: false,
      problem: expect.any(String),
    });
  });
});

describe("given entries that together are larger than a part of the file", () => {
  const partBytes = 256 * 1024;
  const rule = { name: "x".repeat(200), conditions: [] };
  const entries = Array.from({ length: 200 }, (_, number) =>
    flagEntry({ flag_id: id("flag", number), targeting_rules: Array(40).fill(rule) }),
  );

  it("writes and reads them in parts, because a process may have no memory for the whole file", async () => {
    file = join(directory, "snapshot");
    const handle = await open(process.execPath);
    const prototype = Object.getPrototypeOf(handle);
    await handle.close();
    const writes = jest.spyOn(prototype, "writeFile");
    const large = buildSnapshot(id("epoch"), entries);
    await writeCacheFile(file, { snapshot: large, revision: 1, currentAtMs });
    const sizes = writes.mock.calls.map(([text]) => String(text).length);
    writes.mockRestore();
    expect(sizes.length).toBeGreaterThan(1);
    expect(Math.max(...sizes)).toBeLessThan(2 * partBytes);
    const reads = jest.spyOn(prototype, "read");
    const reading = await readCacheFile(file, everyEntryIsGenuine.trusts);
    expect(reads.mock.calls.length).toBeGreaterThan(1);
    reads.mockRestore();
    expect(reading.found && buildSnapshot(reading.epoch, reading.entries)).toEqual(large);
  });
});

describe("given an invalid entry in the file", () => {
  it("rejects the whole file", async () => {
    file = join(directory, "snapshot");
    const wrong = buildSnapshot(id("epoch"), [flagEntry({ committed_at: "yesterday" })]);
    await writeCacheFile(file, { snapshot: wrong, revision: 1, currentAtMs });
    const reading = await readCacheFile(file, everyEntryIsGenuine.trusts);
    expect(reading).toMatchObject({ found: false });
    expect(reading).toHaveProperty("problem", expect.stringContaining("/committed_at"));
  });
});

describe("given a cache for an edge", () => {
  const now = () => currentAtMs + 1_000;

  it("writes the snapshot from NATS when the edge stops, for the next start", async () => {
    const first = createSnapshotHolder({ now, pace: { pauseMs: () => 0 } });
    const cache = cacheFor(first);
    first.replace(id("epoch"), [flagEntry({ version: 7 })]);
    first.reached({ epoch: id("epoch"), revision: 9 });
    await cache.close();

    const next = cacheFor(createSnapshotHolder({ now, pace: { pauseMs: () => 0 } }));
    expect(await next.read()).toMatchObject({
      epoch: id("epoch"),
      held: { epoch: id("epoch"), revision: 9, currentAtMs: now() },
      entries: [{ value: { version: 7 } }],
      currentAtMs: now(),
    });
    await next.close();
  });

  it("writes a snapshot without entries, too", async () => {
    const holder = createSnapshotHolder({ now, pace: { pauseMs: () => 0 } });
    const cache = cacheFor(holder);
    holder.replace(id("epoch"), []);
    await cache.close();
    expect(await readCacheFile(file, everyEntryIsGenuine.trusts)).toMatchObject({ found: true });
  });

  it("leaves the edge without a snapshot if the file is damaged, and logs the reason", async () => {
    const lines: string[] = [];
    await writeFile(join(directory, "snapshot"), "not a snapshot");
    file = join(directory, "snapshot");
    const holder = createSnapshotHolder({ now, pace: { pauseMs: () => 0 } });
    const cache = cacheFor(holder, pino({}, { write: (line: string) => lines.push(line) }));
    expect(await cache.read()).toBeUndefined();
    await cache.close();
    expect(lines.join("")).toContain("the snapshot cache is unusable");
  });

  it("continues if the file cannot be written, and logs the reason", async () => {
    const lines: string[] = [];
    await writeFile(join(directory, "edge"), "a file where a directory is needed");
    const holder = createSnapshotHolder({ now, pace: { pauseMs: () => 0 } });
    const cache = cacheFor(holder, pino({}, { write: (line: string) => lines.push(line) }));
    holder.replace(id("epoch"), [flagEntry()]);
    await cache.close();
    expect(lines.join("")).toContain("the snapshot cache could not be written");
  });

  function cacheFor(
    holder: ReturnType<typeof createSnapshotHolder>,
    logger: Logger = pino({ level: "silent" }),
  ) {
    const { trusts } = everyEntryIsGenuine;
    const cache = createDiskCache({ file, holder, trusts, logger, now });
    holder.onUpdate(cache.follow);
    return cache;
  }
});
