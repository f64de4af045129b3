import { mkdtempSync, readFileSync, rmSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterAll, beforeEach, describe, expect, it } from "@jest/globals";
import {
  createAnchorWriter,
  type Head,
  readAnchorFile,
} from "../src/history/verification/heads.ts";

const folder = mkdtempSync(join(tmpdir(), "halyard-heads-"));
const path = join(folder, "heads.jsonl");
afterAll(() => rmSync(folder, { recursive: true }));

const heads = [1, 2, 3].map(
  (number): Head => ({
    flagId: `00000000-0000-7000-8000-00000000000${number}`,
    environmentId: "00000000-0000-7000-8000-000000000009",
    id: `00000000-0000-7000-9000-00000000000${number}`,
    changedAt: new Date("2027-01-31T09:00:00.000Z"),
    hash: String(number).repeat(64),
    position: number,
  }),
);

beforeEach(async () => {
  const writer = await createAnchorWriter(path);
  for (const head of heads) await writer.add(head);
  expect(await writer.finish()).toBe(3);
});

async function read(): Promise<Head[]> {
  const found: Head[] = [];
  for await (const head of readAnchorFile(path)) found.push(head);
  return found;
}
const alter = (change: (lines: string[]) => string[]) =>
  writeFileSync(path, change(readFileSync(path, "utf8").split("\n")).join("\n"));

describe("a file of heads", () => {
  it("returns the heads that were written", async () => {
    expect(await read()).toEqual(heads);
  });

  it.each<[string, (lines: string[]) => string[], string]>([
    ["is truncated", (lines) => lines.slice(0, 2), "cut off after line 2"],
    ["is empty", () => [], "cut off after line 0"],
    ["has another format", () => ["hello"], "invalid at line 1"],
    ["lacks a line", ([, ...lines]) => lines, "invalid at line 3"],
    ["has a line twice", (lines) => [lines[0] ?? "", ...lines], "not in order at line 2"],
    ["is in another order", ([one = "", two = "", ...rest]) => [two, one, ...rest], "not in order"],
    ["has more lines at its end", (lines) => [...lines.slice(0, -1), "{}"], "after its last one"],
  ])("is rejected if it %s", async (_what, change, problem) => {
    alter(change);
    await expect(read()).rejects.toThrow(problem);
  });
});
