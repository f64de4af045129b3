import type { FlagEntry } from "@halyard/contracts";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { apiKey, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/** One customer has rules that take long to evaluate for a stream. Other customers use the same edge. */
const costly = apiKey();
const other = apiKey({ environment_id: id("env", 2) });
const flagCount = 100;
const text = hardText(3_700);
let edge: EdgeServer;
let stream: EventStream | undefined;

beforeEach(async () => {
  edge = await startEdgeServer([
    costly.entry,
    other.entry,
    ...Array.from({ length: flagCount }, (_, number) => flag(number, costlyRules(number))),
    flagEntry({ flag_id: id("flag", 999), environment_id: id("env", 2), key: "other" }),
  ]);
});
afterEach(async () => {
  stream?.close();
  await edge.stop();
});

describe("given a change for a stream with slow rules", () => {
  it("is evaluated step by step, between the requests of others", async () => {
    const opened = await openEventStream(`${edge.url}/api/v1/sdk/stream`, {
      authorization: `Bearer ${costly.text}`,
      "x-user-attributes": `text=${text}`,
    });
    stream = opened;
    await eventually(() => opened.events.length > 1);

    await edge.feed(flag(0, { enabled: false, version: 2 }), flag(flagCount, { version: 2 }));
    let servedMeanwhile = 0;
    while (flagsOf(opened).length < 2) {
      const { status } = await call(`${edge.url}/api/v1/sdk/flags`, { key: other.text });
      expect(status).toBe(200);
      servedMeanwhile += 1;
    }

    expect(flagsOf(opened)[1]?.data).toEqual({ flags: { [keyOf(flagCount)]: true } });
    // An uninterrupted evaluation would end before the second response.
    expect(servedMeanwhile).toBeGreaterThan(3);
  });
});

/** Returns a text that creates a new state of the expressions below with nearly every letter. */
function hardText(length: number): string {
  let state = 7;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state < 2 ** 31 ? "a" : "b";
  }).join("");
}

/** Returns rules with two expressions per flag, which never match. */
function costlyRules(number: number): Partial<FlagEntry> {
  const rules = ["a", "b"].map((letter) => {
    const value = `[ab]*${letter}[ab]{28}[x\\x{${(0x4000 + number).toString(16)}}]`;
    return { conditions: [{ attribute: "text", operator: "matches_regex" as const, value }] };
  });
  return { targeting_rules: rules };
}

const keyOf = (number: number) => `flag-${number}`;

function flag(number: number, fields: Partial<FlagEntry>) {
  return flagEntry({ flag_id: id("flag", number), key: keyOf(number), enabled: true, ...fields });
}

/** Returns the `flags` events, without the heartbeats in between. */
const flagsOf = ({ events }: EventStream) => events.filter(({ event }) => event === "flags");
