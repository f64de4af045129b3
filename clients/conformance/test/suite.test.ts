import { createHash } from "node:crypto";
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "@jest/globals";
import { Ajv2020 } from "ajv/dist/2020.js";
import { parseExact, stringifyExact } from "../src/exact-numbers.ts";
import { readSuite } from "../src/suite.ts";

const folder = new URL("../../../conformance/", import.meta.url);
const { files } = readSuite();

/** Minimum number of cases, so that cases are not deleted by mistake. */
const fewestCases = 400;

function readJson(path: string): object {
  return JSON.parse(readFileSync(new URL(path, folder), "utf8")) as object;
}

describe("the conformance suite", () => {
  const ajv = new Ajv2020({ strict: true, strictTypes: false, strictRequired: false });
  const isCaseFile = ajv.compile(readJson("schema.json"));

  it.each(files)("has a file that matches the schema: $path", ({ path }) => {
    isCaseFile(readJson(path));
    expect(isCaseFile.errors ?? []).toEqual([]);
  });

  it.each(files)("has a file whose cases have unique names: $path", ({ cases }) => {
    const names = cases.map(({ name }) => name);
    expect(new Set(names).size).toBe(names.length);
  });

  it("lists every file in the folder", () => {
    const present = readdirSync(new URL("cases/", folder)).map((name) => `cases/${name}`);
    expect(files.map(({ path }) => path).toSorted()).toEqual(present.toSorted());
  });

  it(`has at least ${fewestCases} cases`, () => {
    const total = files.reduce((sum, { cases }) => sum + cases.length, 0);
    expect(total).toBeGreaterThanOrEqual(fewestCases);
  });
});

describe("a request as JSON", () => {
  const checks = files.flatMap(({ cases }) => cases).flatMap((each) => each.checks);

  it("has the value of its request", () => {
    for (const { request, requestJson } of checks) expect(JSON.parse(requestJson)).toEqual(request);
  });

  it("consists of ASCII without line breaks", () => {
    for (const { requestJson } of checks) expect(requestJson).toMatch(/^[ -~]*$/);
  });

  it.each(["5.0", "1e2", "9007199254740993"])("keeps the notation of %s", (number) => {
    expect(checks.some(({ requestJson }) => requestJson.includes(`:${number}`))).toBe(true);
  });
});

describe("the chunks of lists", () => {
  it("have the SHA-256 by which audiences name them", () => {
    const requests = files
      .flatMap(({ cases }) => cases)
      .flatMap(({ checks }) => checks.map(({ request }) => request));
    const chunks = requests.flatMap((request) =>
      request.op === "evaluate" ? Object.entries(request.chunks ?? {}) : [],
    );
    expect(chunks.length).toBeGreaterThan(0);
    for (const [sha256, hex] of chunks)
      expect(createHash("sha256").update(Buffer.from(hex, "hex")).digest("hex")).toBe(sha256);
  });
});

describe("JSON with exact numbers", () => {
  it.each([
    '{"a":[1.0,-2E+2,{"b":-0}],"c":"1.0","d":true,"e":null}',
    '"a \\"1.0\\" \\\\"',
    '{"__proto__":1.50,"x":"12"}',
  ])("writes what it has read: %s", (json) => {
    expect(stringifyExact(parseExact(json))).toBe(json);
  });
});
