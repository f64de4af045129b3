import { compileCheck, OfrepBulkEvaluation } from "@halyard/contracts";
import { numberOfOutcome, outcomes, outcomesByNumber } from "@halyard/evaluation";
import { describe, expect, it } from "@jest/globals";
import { FlagKeys, SegmentKeys } from "../../src/environment/flag-keys.ts";
import { createBulkWriter, type StreamOffer } from "../../src/ofrep/bulk-writer.ts";
import { evaluationJson } from "../../src/ofrep/evaluation-json.ts";

const check = compileCheck(OfrepBulkEvaluation);
const all = outcomesByNumber;
const nothing: StreamOffer = { hour: 0, json: "}" };
const offer = (hour: number): StreamOffer => ({
  hour,
  json: `,"eventStreams":[{"type":"sse","endpoint":{"requestUri":"/stream?token=${hour}"}}]}`,
});
const keys = ["alpha", "beta", "gamma"];
const writerFor = (given: string[]) => createBulkWriter(new FlagKeys([new SegmentKeys(given)]));

function fill(writer: ReturnType<typeof writerFor>, ...chosen: (typeof all)[number][]) {
  chosen.forEach((outcome, index) => {
    writer.outcomeNumbers[index] = numberOfOutcome(outcome);
  });
}

function written(writer: ReturnType<typeof writerFor>, given: StreamOffer) {
  return JSON.parse(writer.body(given, writer.tag(given))) as { flags: unknown[] };
}

describe("given outcomes", () => {
  it("writes every one of them as OFREP has it, in the order of the keys", () => {
    const writer = writerFor(all.map((_outcome, index) => `flag-${index}`));
    fill(writer, ...all);
    const body = written(writer, offer(7));
    expect(check(body)).toMatchObject({ ok: true });
    expect(body.flags).toEqual(
      all.map(({ value, reason, variation }, index) => ({
        key: `flag-${index}`,
        value,
        reason: reason.toUpperCase(),
        variant: variation,
      })),
    );
  });

  it("writes the right ones however they follow one another", () => {
    const writer = writerFor(keys);
    for (let round = 0; round < 500; round += 1) {
      const chosen = keys.map((_key, index) => all[(round * (index + 1) + index) % all.length]);
      fill(writer, ...(chosen as typeof all));
      expect(written(writer, offer(round >> 4)).flags).toEqual(
        chosen.map((outcome, index) =>
          JSON.parse(evaluationJson(keys[index] as string, outcome as (typeof all)[number])),
        ),
      );
    }
  });

  it("is ASCII, whatever the keys are", () => {
    const writer = writerFor(['"größe"\u2028', "\\"]);
    const body = writer.body(nothing, writer.tag(nothing));
    expect(body).toMatch(/^[\x20-\x7e]*$/);
    expect(JSON.parse(body).flags.map(({ key }: { key: string }) => key)).toEqual([
      '"größe"\u2028',
      "\\",
    ]);
  });

  it("says nothing of streams where none are offered", () => {
    expect(written(writerFor(keys), nothing)).not.toHaveProperty("eventStreams");
    expect(written(writerFor([]), nothing)).toEqual({ flags: [] });
  });
});

describe("given a tag", () => {
  it("is strong, and the same for the same outcomes on every edge", () => {
    const [here, there] = [writerFor(keys), writerFor(keys)];
    for (const writer of [here, there])
      fill(writer, outcomes.static, outcomes.splitOn, outcomes.disabled);
    expect(here.tag(offer(1))).toBe(there.tag(offer(1)));
    expect(here.tag(offer(1))).toMatch(/^"[\w-]{22}"$/);
  });

  it("is another one for another value, reason, set of keys, or hour", () => {
    const writer = writerFor(keys);
    const tags = [
      [outcomes.static, outcomes.splitOn, outcomes.disabled],
      [outcomes.static, outcomes.splitOff, outcomes.disabled],
      [outcomes.static, outcomes.matchOn, outcomes.disabled],
      [outcomes.splitOn, outcomes.static, outcomes.disabled],
    ].map((chosen) => {
      fill(writer, ...chosen);
      return writer.tag(offer(1));
    });
    const others = writerFor(["alpha", "beta", "delta"]);
    fill(others, outcomes.static, outcomes.splitOn, outcomes.disabled);
    tags.push(others.tag(offer(1)), writer.tag(offer(2)), writer.tag(nothing));
    expect(new Set(tags).size).toBe(tags.length);
  });
});

describe("given the same answer again", () => {
  it("is the very body that was written before, within the hour", () => {
    const writer = writerFor(keys);
    const first = writer.body(offer(1), writer.tag(offer(1)));
    fill(writer, outcomes.static);
    writer.body(offer(1), writer.tag(offer(1)));
    fill(writer, outcomes.disabled);
    expect(writer.body(offer(1), writer.tag(offer(1)))).toBe(first);
    expect(JSON.parse(writer.body(offer(2), writer.tag(offer(2))))).toMatchObject({
      eventStreams: [{ endpoint: { requestUri: "/stream?token=2" } }],
    });
  });
});
