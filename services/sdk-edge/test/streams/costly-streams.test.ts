import type { FlagEntry } from "@halyard/contracts";
import { createContext } from "@halyard/evaluation";
import { call, type EventStream, eventually, openEventStream } from "@halyard/testing";
import { afterEach, beforeEach, describe, expect, it } from "@jest/globals";
import { deriveView } from "../../src/environment/environment-view.ts";
import { apiKey, flagEntry, id } from "../builders.ts";
import { type EdgeServer, startEdgeServer } from "../edge-server.ts";

/** One customer's rules that take long to evaluate for a stream, on an edge that others use as well. */
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

describe("given a change for a stream whose rules take long", () => {
  it("is worked out between what others ask, a step at a time", async () => {
    const opened = await openEventStream(`${edge.url}/api/v1/sdk/stream`, {
      authorization: `Bearer ${costly.text}`,
      "x-user-attributes": `text=${text}`,
    });
    stream = opened;
    await eventually(() => opened.events.length > 1);
    const inOnePieceMs = evaluationMs();

    const loop = watchLoop();
    await edge.feed(flag(0, { enabled: false, version: 2 }), flag(flagCount, { version: 2 }));
    let answeredMeanwhile = 0;
    while (flagsOf(opened).length < 2) {
      const { status } = await call(`${edge.url}/api/v1/sdk/flags`, { key: other.text });
      expect(status).toBe(200);
      answeredMeanwhile += 1;
    }
    const longestMs = loop.stop();

    expect(flagsOf(opened)[1]?.data).toEqual({ flags: { [keyOf(flagCount)]: true } });
    // A step and a slice are a few hundredths of it; in one piece it would be more than all.
    expect(longestMs).toBeLessThan(inOnePieceMs / 4);
    expect(answeredMeanwhile).toBeGreaterThan(3);
  });
});

/** How long it takes to evaluate all flags once, without a stop. */
function evaluationMs(): number {
  const view = deriveView(edge.holder.snapshot?.environments.get(id("env")));
  const context = createContext(new Map([["text", text]]));
  const began = processorMs();
  view.outcomesFor(context);
  return processorMs() - began;
}

/**
 * Finds the longest time between two turns of the event loop, in which nobody was served. It is this
 * thread's time on the processor: what else goes on on the machine does not matter.
 */
function watchLoop(): { stop(): number } {
  let longestMs = 0;
  let lastMs = processorMs();
  let next = setImmediate(turn);
  function turn(): void {
    const nowMs = processorMs();
    longestMs = Math.max(longestMs, nowMs - lastMs);
    lastMs = nowMs;
    next = setImmediate(turn);
  }
  return {
    stop() {
      clearImmediate(next);
      return longestMs;
    },
  };
}

function processorMs(): number {
  const { user, system } = process.threadCpuUsage();
  return (user + system) / 1_000;
}

/** Letters in which the expressions below find ever new states. */
function hardText(length: number): string {
  let state = 7;
  return Array.from({ length }, () => {
    state = (Math.imul(state, 1_103_515_245) + 12_345) >>> 0;
    return state < 2 ** 31 ? "a" : "b";
  }).join("");
}

/** Each flag has two expressions of its own, which nobody matches. */
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

/** Heartbeats come when it is their turn. */
const flagsOf = ({ events }: EventStream) => events.filter(({ event }) => event === "flags");
