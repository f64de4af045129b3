import { chmod, readdir, readFile, stat, truncate, writeFile } from "node:fs/promises";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, test } from "@jest/globals";
import { cacheBindingOf, readCacheFile, writeCacheFile } from "../src/cache-file.ts";
import { parseRules } from "../src/rules/parse-rules.ts";
import { environmentId } from "./support/fake-edge.ts";
import { endAll, newCacheFile, serverKey } from "./support/setup.ts";

const binding = cacheBindingOf("https://flags.example.com", serverKey);
const savedAt = new Date("2026-11-23T10:00:00.000Z");
const flag = { enabled: true, rollout_percentage: 100, targeting_rules: [], version: 3 };
let path: string;

beforeEach(async () => {
  path = await newCacheFile();
});
afterEach(endAll);

async function write(): Promise<void> {
  const parsed = parseRules(
    JSON.stringify({ format: 2, environment_id: environmentId, flags: { "new-checkout": flag } }),
  );
  if (!parsed.ok) throw new Error(parsed.problem);
  await writeCacheFile(path, binding, {
    rules: parsed.value,
    chunks: new Map(),
    etag: '"1-a"',
    savedAt,
  });
}

describe("a cache file", () => {
  test("returns the flags, the tag and the time that were written", async () => {
    await write();
    const reading = readCacheFile(path, binding);
    expect(reading).toMatchObject({ found: true, cached: { etag: '"1-a"', savedAt } });
    expect(reading.found && reading.cached.rules.flags.get("new-checkout")).toMatchObject(flag);
  });

  test("keeps what flags need, for other versions that read it", async () => {
    const flags = {
      later: { ...flag, needs: ["moon"] },
      supported: { ...flag, needs: ["buckets"] },
    };
    const parsed = parseRules(JSON.stringify({ format: 2, environment_id: environmentId, flags }));
    if (!parsed.ok) throw new Error(parsed.problem);
    await writeCacheFile(path, binding, {
      rules: parsed.value,
      chunks: new Map(),
      etag: '"1-a"',
      savedAt,
    });
    const text = await readFile(path, "utf8");
    expect(text).toContain('"needs":["moon"]');
    // An older version that reads this file after a downgrade must not guess.
    expect(text).toContain('"needs":["buckets"]');
    const reading = readCacheFile(path, binding);
    expect(reading.found && [...reading.cached.rules.unsupported.keys()]).toEqual(["later"]);
    expect(reading.found && [...reading.cached.rules.flags.keys()]).toEqual(["supported"]);
  });

  test("can be read by its owner only, whatever the mode of the file that it replaces", async () => {
    await writeFile(path, "old");
    await chmod(path, 0o644);
    await write();
    expect((await stat(path)).mode & 0o777).toBe(0o600);
  });

  test("contains neither the base address nor the secret of the key", async () => {
    await write();
    const text = await readFile(path, "utf8");
    expect(text).not.toContain("flags.example.com");
    expect(text).not.toContain("sssss");
  });

  test("leaves no other file behind", async () => {
    await write();
    await write();
    expect(await readdir(join(path, ".."))).toEqual(["flags.json"]);
  });

  test("that does not exist is no problem", () => {
    expect(readCacheFile(path, binding)).toEqual({ found: false });
  });

  test("in folders that do not exist creates them, for its owner only", async () => {
    path = join(path, "..", "missing", "folder", "flags.json");
    await write();
    expect(readCacheFile(path, binding).found).toBe(true);
    expect((await stat(join(path, ".."))).mode & 0o777).toBe(0o700);
  });

  test("below a file fails to be written, and leaves nothing", async () => {
    await write();
    path = join(path, "flags.json");
    await expect(write()).rejects.toThrow("EEXIST");
  });
});

describe("a cache file is ignored", () => {
  test.each(["https://other.example.com", "https://flags.example.com/eu"])(
    "if it comes from another base address: %s",
    async (baseUrl) => {
      await write();
      expect(readCacheFile(path, cacheBindingOf(baseUrl, serverKey))).toEqual({
        found: false,
        problem: "it belongs to another base address or key",
      });
    },
  );

  test("if it comes from another key, and so perhaps from another environment", async () => {
    await write();
    const other = cacheBindingOf("https://flags.example.com", serverKey.replace("a", "b"));
    expect(readCacheFile(path, other).found).toBe(false);
  });

  test("if it is truncated anywhere", async () => {
    await write();
    const { size } = await stat(path);
    for (const length of [0, 1, 40, Math.floor(size / 2), size - 1]) {
      await write();
      await truncate(path, length);
      expect(readCacheFile(path, binding)).toMatchObject({
        found: false,
        problem: "it is truncated or damaged",
      });
    }
  });

  test("if one byte differs", async () => {
    await write();
    const text = await readFile(path, "utf8");
    await writeFile(path, text.replace('"enabled":true', '"enabled":fals'));
    expect(readCacheFile(path, binding).found).toBe(false);
  });

  test.each(["", "\n", "{}\n{}", "null\nnull", "\0\0\0", "[1]\n{}"])(
    "if it contains %j",
    async (text) => {
      await writeFile(path, text);
      expect(readCacheFile(path, binding).found).toBe(false);
    },
  );

  test("if it is a folder", () => {
    expect(readCacheFile(join(path, ".."), binding)).toMatchObject({ found: false });
  });
});
