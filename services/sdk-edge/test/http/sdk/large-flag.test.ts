import type { FlagEntry } from "@halyard/contracts";
import { call } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it, jest } from "@jest/globals";
import { PreparedFlag } from "../../../src/answers/prepared-flag.ts";
import { apiKey, flagEntry, id, typedFlag } from "../../builders.ts";
import { type EdgeServer, startEdgeServer } from "../../edge-server.ts";

/**
 * The largest flag that a project can have must not slow the responses that do not contain it. Its texts are the only
 * part of it that takes time in proportion to its size.
 */
const client = apiKey();
const elsewhere = apiKey({ environment_id: id("env", 2) });
const value = (letter: string) => JSON.stringify({ text: letter.repeat(64 * 1024 - 11) });
const large = (fields: Partial<FlagEntry> = {}) =>
  typedFlag(
    "object",
    { a: value("a"), b: value("b"), c: value("c"), d: value("d") },
    { flag_id: id("flag", 1), key: "large", ...fields },
  );
const small = (number: number, fields: Partial<FlagEntry> = {}) =>
  typedFlag("string", { it: '"blue"' }, { flag_id: id("flag", number), key: "color", ...fields });

let edge: EdgeServer;
const prepared = jest.spyOn(PreparedFlag.prototype, "variationTexts");
beforeEach(async () => {
  edge = await startEdgeServer([
    ...[client.entry, elsewhere.entry, large(), small(2)],
    flagEntry({ flag_id: id("flag", 3), key: "checkout", enabled: true }),
    small(4, { environment_id: id("env", 2) }),
  ]);
  prepared.mockClear();
});
afterEach(() => edge.stop());

const ask = (path: string, key = client.text, method = "GET") =>
  call(`${edge.url}${path}`, { key, method, ...(method === "POST" && { body: {} }) });

/** Returns the keys of the flags whose texts were needed since the last call. */
function neededTexts(): string[] {
  const keys = prepared.mock.contexts.map((flag) => (flag as PreparedFlag).entry.key);
  prepared.mockClear();
  return [...new Set(keys)].toSorted();
}

describe("given a flag with 256 KiB of values", () => {
  it.each([
    ["GET", "/api/v1/sdk/evaluate?key=checkout", []],
    ["GET", "/api/v1/sdk/evaluate?key=color", []],
    ["GET", "/api/v1/sdk/flags", []],
    ["POST", "/ofrep/v1/evaluate/flags/checkout", []],
    ["POST", "/ofrep/v1/evaluate/flags/color", ["color"]],
  ])("%s %s needs no text of it", async (method, path, texts) => {
    expect((await ask(path, client.text, method)).status).toBe(200);
    expect(neededTexts()).toEqual(texts);
  });

  it("needs its texts for the responses that contain it", async () => {
    await ask("/api/v1/sdk/values");
    expect(neededTexts()).toEqual(["color", "large"]);
  });

  it("changes without work for another environment, whose values stay prepared", async () => {
    await ask("/api/v1/sdk/values", elsewhere.text);
    expect(neededTexts()).toEqual(["color"]);
    await edge.feed(large({ version: 2, serve: { variation: "b" } }));
    await ask("/api/v1/sdk/values", elsewhere.text);
    expect(neededTexts()).toEqual([]);
  });
});
