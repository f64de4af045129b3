import { createHash } from "node:crypto";
import { readFileSync } from "node:fs";
import {
  type AudienceList,
  allocateRanges,
  bucketOf,
  bytesOfHex,
  callersDefault,
  compile,
  compileAudience,
  contextOf,
  findUnknown,
  knownNeeds,
  type Range,
  type ResolvedState,
  SipHash,
  splitBucketOf,
} from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { blocksOf, tableOf } from "../../src/stories/page-blocks.ts";

/** Tests that the worked examples of docs/sdk-authors.md are those of the engine. */
const page = readFileSync(new URL("../../../docs/sdk-authors.md", import.meta.url), "utf8");

const textOf = (cell = "") => cell.replaceAll("`", "");

describe("docs/sdk-authors.md", () => {
  it("lists the words of needs", () => {
    const rows = tableOf(page, "Word | What the flag uses");
    expect(rows.map(([word]) => textOf(word))).toEqual(knownNeeds);
  });

  it("shows the two buckets", () => {
    const rows = tableOf(page, "Seed | Unit");
    expect(rows.length).toBeGreaterThan(3);
    for (const [seed = "", unit = "", ...buckets] of rows)
      expect([seed, unit, ...buckets]).toEqual([
        ...[seed, unit, String(bucketOf(textOf(seed), textOf(unit)))],
        String(splitBucketOf(textOf(seed), textOf(unit))),
      ]);
  });

  it("shows the variation that each user gets, and the reason", () => {
    const [example] = blocksOf(page).filter(({ kind }) => kind === "json flag");
    const flag = JSON.parse(example?.text ?? "null") as ResolvedState;
    expect(findUnknown(flag)).toBeUndefined();
    const { evaluate, variationOf = () => callersDefault } = compile(flag);
    const rows = tableOf(page, "Context | Variation");
    expect(rows.length).toBeGreaterThan(5);
    for (const [given = "", variation, reason] of rows) {
      const context = contextOf(JSON.parse(textOf(given)));
      const key = flag.variations?.[variationOf(context)]?.key ?? "null";
      expect([given, textOf(variation), textOf(reason)]).toEqual([
        ...[given, key, evaluate(context).reason],
      ]);
    }
  });

  it("shows the fingerprints of texts, and the members of a list", () => {
    const [example] = blocksOf(page).filter(({ kind }) => kind === "json list");
    const list = JSON.parse(example?.text ?? "null") as AudienceList;
    const [, secondChunk = ""] = /second chunk of the example is `([0-9a-f]+)`/.exec(page) ?? [];
    const chunks = ["", secondChunk].map(bytesOfHex);
    const sha256 = (chunk: Uint8Array) => createHash("sha256").update(chunk).digest("hex");
    expect(chunks.map(sha256)).toEqual(list.chunks);
    const hash = new SipHash(bytesOfHex(list.key));
    const { condition } = compileAudience({ match: [], list }, chunks);
    const rows = tableOf(page, "Text | Fingerprint");
    expect(rows.length).toBeGreaterThan(3);
    for (const [text = "", fingerprint, member] of rows) {
      hash.hash(textOf(text));
      const halves = [hash.high, hash.low].map((half) => half.toString(16).padStart(8, "0"));
      const isMember = condition.holds(contextOf({ id: textOf(text) }));
      expect([text, textOf(fingerprint), member]).toEqual([
        ...[text, halves.join(""), isMember ? "yes" : "no"],
      ]);
    }
  });

  it("shows the ranges after a change of weights", () => {
    const rows = tableOf(page, "Before | Weights");
    expect(rows.length).toBeGreaterThan(2);
    for (const [before, weights, after] of rows) {
      const ranges = JSON.parse(textOf(before)) as Record<string, Range[]>;
      const wanted = Object.entries(JSON.parse(textOf(weights)) as Record<string, number>);
      const allocated = allocateRanges(
        new Map(Object.entries(ranges)),
        wanted.map(([variation, weight]) => ({ variation, size: weight * 100 })),
      );
      expect(Object.fromEntries(allocated)).toEqual(JSON.parse(textOf(after)));
    }
  });
});
