import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { maxUnsentBytes, retryLine } from "@halyard/http";
import { afterEach, describe, expect, it, jest } from "@jest/globals";
import {
  createStreamRegistry,
  heartbeatGroups,
  OpenStream,
} from "../../src/streams/stream-registry.ts";
import { createStreamUpkeep, type StreamUpkeep } from "../../src/streams/stream-upkeep.ts";

let upkeep: StreamUpkeep | undefined;
afterEach(() => {
  upkeep?.stop();
  jest.useRealTimers();
});

describe("given many open streams", () => {
  it("sends one heartbeat to each stream per round, to one group of streams at a time", () => {
    const streams = Array.from({ length: 600 }, () => openStream());
    const { tick, counts } = upkeepOf(streams);
    tick();
    expect(counts.heartbeat).toBe(600 / heartbeatGroups);
    for (let more = 1; more < heartbeatGroups; more += 1) tick();
    expect(new Set(streams.map(({ written }) => written.length))).toEqual(new Set([1]));
    expect(streams[0]?.written[0]).toBe('event: heartbeat\ndata: {"timestamp":1800000000}\n\n');
  });

  it("sends heartbeats to streams of rules every 3 s, with that interval, and to others every 15 s", () => {
    const rules = Array.from({ length: heartbeatGroups }, () => openStream({ kind: "ruleset" }));
    const others = (["flags", "refetch"] as const).map((kind) => openStream({ kind }));
    const { tick } = upkeepOf([...rules, ...others]);
    for (let turn = 0; turn < heartbeatGroups; turn += 1) tick();
    expect(new Set(rules.map(({ written }) => written.length))).toEqual(new Set([5]));
    expect(rules[0]?.written[0]).toBe(
      'event: heartbeat\ndata: {"timestamp":1800000000,"interval":3}\n\n',
    );
    expect(others.map(({ written }) => written.length)).toEqual([1, 1]);
  });

  it("sends no heartbeats to streams that are full, behind or ended", () => {
    const full = openStream({ writableLength: maxUnsentBytes + 1 });
    const behind = openStream({ behindSinceMs: nowMs });
    const ended = openStream({ writableEnded: true });
    const { tick, counts } = upkeepOf([full, behind, ended]);
    for (let turn = 0; turn < heartbeatGroups; turn += 1) tick();
    expect(counts.heartbeat).toBe(0);
  });

  it("closes only streams that have been behind for too long", () => {
    const justBehind = openStream({ behindSinceMs: nowMs - 30_000 });
    const farBehind = openStream({ behindSinceMs: nowMs - 30_001, writableLength: 1 });
    upkeepOf([justBehind, farBehind]).tick();
    expect(farBehind).toMatchObject({ destroyed: true, stream: { closeCause: "slow_reader" } });
    expect(justBehind.destroyed).toBe(false);
  });

  it("closes only streams whose key has ended", () => {
    const ending = openStream({ keyId: "ended" });
    const staying = openStream();
    upkeepOf([ending, staying]).endStreamsOfEndedKeys();
    expect(ending).toMatchObject({ ended: true, stream: { closeCause: "key_ended" } });
    expect(staying.ended).toBe(false);
  });

  it("closes a stream within a second after its key has ended", () => {
    jest.useFakeTimers();
    const ending = openStream({ keyId: "ended" });
    upkeepOf([ending]);
    jest.advanceTimersByTime(1_000);
    expect(ending.ended).toBe(true);
  });
});

describe("given an edge that shuts down", () => {
  it.each([
    { count: 600, perStep: 10, steps: 60 },
    { count: 601, perStep: 11, steps: 55 },
    { count: 3, perStep: 1, steps: 3 },
  ])("ends $count streams in $steps steps of 50 ms", async ({ count, perStep, steps }) => {
    const streams = Array.from({ length: count }, () => openStream());
    const pauses: { ms: number; ended: number }[] = [];
    const { drain } = upkeepOf(streams, {
      async pause(ms) {
        pauses.push({ ms, ended: streams.filter(({ ended }) => ended).length });
      },
    });
    await drain();
    expect(pauses).toEqual(
      Array.from({ length: steps }, (_, step) => ({
        ms: 50,
        ended: Math.min(count, (step + 1) * perStep),
      })),
    );
    expect(streams.every(({ destroyed }) => destroyed)).toBe(true);
  });
});

describe("given the retry time of clients", () => {
  it.each([
    [0, 3_000],
    [0.5, 3_750],
    [0.999_999, 4_499],
  ])("lies between 3 and 4.5 seconds (%s)", (random, milliseconds) => {
    expect(retryLine(() => random)).toBe(`retry: ${milliseconds}\n\n`);
  });
});

const nowMs = 1_800_000_000_000;

/** Creates a stream without a connection that records what happens to it. */
function openStream({
  keyId = "live",
  kind = "flags",
  behindSinceMs,
  ...state
}: {
  keyId?: string;
  kind?: OpenStream["kind"];
  behindSinceMs?: number;
  writableLength?: number;
  writableEnded?: boolean;
} = {}) {
  const seen = { written: [] as string[], ended: false, destroyed: false };
  const response = {
    socket: null,
    writableLength: 0,
    writableEnded: false,
    destroyed: false,
    once: () => undefined,
    write: (event: Buffer) => seen.written.push(event.toString()),
    end: () => {
      seen.ended = true;
    },
    destroy: () => {
      seen.destroyed = true;
    },
  };
  const key = { id: keyId, environmentId: "environment" } as DirectoryKey;
  const stream = new OpenStream(kind, response as unknown as ServerResponse, key);
  if (behindSinceMs !== undefined) {
    response.writableLength = maxUnsentBytes + 1;
    stream.hasRoomOrFallsBehind(behindSinceMs, () => undefined);
    response.writableLength = 0;
  }
  Object.assign(response, state);
  return Object.assign(seen, { stream });
}

function upkeepOf(
  streams: { stream: OpenStream }[],
  options: { pause?: (ms: number) => Promise<unknown> } = {},
) {
  const openStreams = createStreamRegistry();
  const ofKind = openStreams.ofKind({ notify: () => undefined, onClose: () => undefined });
  for (const { stream } of streams) ofKind.add(stream);
  upkeep = createStreamUpkeep({
    openStreams,
    isKeyLive: (keyId) => keyId === "live",
    now: () => nowMs,
    random: () => 0,
    ...options,
  });
  return { ...upkeep, counts: openStreams.counts };
}
