import { compileCheck, OfrepBulkEvaluation } from "@halyard/contracts";
import { codeOfOutcome, outcomes, outcomesByCode } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { FlagKeys, SegmentKeys } from "../../../src/answers/flag-keys.ts";
import { bulkWriterOf } from "../../../src/http/ofrep/bulk-writer.ts";
import { evaluationJson } from "../../../src/http/ofrep/evaluation-json.ts";

const check = compileCheck(OfrepBulkEvaluation);
const all = outcomesByCode;
const offer = (hour: number) =>
  `,"eventStreams":[{"type":"sse","endpoint":{"requestUri":"/stream?token=${hour}"}}]`;
const keys = ["alpha", "beta", "gamma"];
const writerFor = (given: string[]) => bulkWriterOf(new FlagKeys([new SegmentKeys(given)]));

const numbersOf = (...chosen: readonly (typeof all)[number][]) =>
  Uint8Array.from(chosen, codeOfOutcome);

type Writer = ReturnType<typeof writerFor>;

function written(writer: Writer, outcomeCodes: Uint8Array, given: string) {
  return JSON.parse(writer.body(outcomeCodes, given)) as { flags: unknown[] };
}

describe("given outcomes", () => {
  it("writes each of them in OFREP's format, in the order of the keys", () => {
    const writer = writerFor(all.map((_outcome, index) => `flag-${index}`));
    const body = written(writer, numbersOf(...all), offer(7));
    expect(check(body)).toMatchObject({ ok: true });
    expect(body.flags).toEqual(
      all.map(({ value, reason, variation }, index) => ({
        key: `flag-${index}`,
        value,
        reason: reason === "prerequisite_failed" ? "DEFAULT" : reason.toUpperCase(),
        variant: variation,
      })),
    );
  });

  it("writes the correct outcomes for any sequence of calls", () => {
    const writer = writerFor(keys);
    for (let round = 0; round < 500; round += 1) {
      const chosen = keys.map((_key, index) => all[(round * (index + 1) + index) % all.length]);
      const numbers = numbersOf(...(chosen as typeof all));
      expect(written(writer, numbers, offer(round >> 4)).flags).toEqual(
        chosen.map((outcome, index) =>
          JSON.parse(evaluationJson(keys[index] as string, outcome as (typeof all)[number])),
        ),
      );
    }
  });

  it("writes ASCII for any keys", () => {
    const writer = writerFor(['"größe"\u2028', "\\"]);
    const body = writer.body(new Uint8Array(2), "");
    expect(body).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(body).flags.map(({ key }: { key: string }) => key)).toEqual([
      '"größe"\u2028',
      "\\",
    ]);
  });

  it("omits the streams if none are offered", () => {
    expect(written(writerFor(keys), new Uint8Array(3), "")).not.toHaveProperty("eventStreams");
    expect(written(writerFor([]), new Uint8Array(), "")).toEqual({ flags: [] });
  });
});

describe("given a tag", () => {
  it("differs for another unmet requirement", () => {
    const numbers = numbersOf(outcomes.static, outcomes.prerequisiteFailed, outcomes.disabled);
    const [one, other] = ["alpha", "gamma"].map((key) =>
      writerFor(keys).tag(numbers, offer(1), { flags: [], variations: [], unmet: [key] }),
    );
    expect(one).not.toBe(other);
  });

  it("is strong, and the same for the same outcomes on every edge", () => {
    const numbers = numbersOf(outcomes.static, outcomes.splitOn, outcomes.disabled);
    const tag = writerFor(keys).tag(numbers, offer(1));
    expect(writerFor(keys).tag(numbers, offer(1))).toBe(tag);
    expect(tag).toMatch(/^"[\w-]{22}"$/);
  });

  it("differs for another value, reason, set of keys, or hour", () => {
    const writer = writerFor(keys);
    const tags = [
      [outcomes.static, outcomes.splitOn, outcomes.disabled],
      [outcomes.static, outcomes.splitOff, outcomes.disabled],
      [outcomes.static, outcomes.matchOn, outcomes.disabled],
      [outcomes.splitOn, outcomes.static, outcomes.disabled],
    ].map((chosen) => writer.tag(numbersOf(...chosen), offer(1)));
    const numbers = numbersOf(outcomes.static, outcomes.splitOn, outcomes.disabled);
    const others = writerFor(["alpha", "beta", "delta"]);
    tags.push(others.tag(numbers, offer(1)));
    tags.push(writer.tag(numbers, offer(2)), writer.tag(numbers, ""));
    expect(new Set(tags).size).toBe(tags.length);
  });
});
