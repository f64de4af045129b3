import { setTimeout as delay } from "node:timers/promises";
import { endStream, hasRoom, isFarBehind, type Stream, sinkOf } from "./stream.ts";
import { heartbeatEvent, keepAlive, retryLine } from "./stream-events.ts";
import type { StreamCounts, StreamRegistry } from "./stream-registry.ts";

/**
 * What is done to the open streams from time to time. One timer serves all of them: at each tick
 * another part gets its heartbeat, so that ten thousand streams are never written to at once for its
 * sake, and all are asked whether they still have a right to be open.
 */
export type StreamRounds = {
  /** Ends the streams whose key has ended. */
  endWithKeys(): void;
  tick(): void;
  /** Sends all clients elsewhere over a few seconds, and resolves when all are gone. */
  drain(): Promise<void>;
  stop(): void;
};

const heartbeatIntervalMs = 15_000;
export const streamSlots = 60;
/** Also how late a stream may notice that its key has expired. */
const tickMs = heartbeatIntervalMs / streamSlots;

/** The clients of a stopping edge arrive elsewhere over this time, not all at once. */
const drainMs = 3_000;
const drainSteps = 60;

export function createStreamRounds(options: {
  registry: StreamRegistry;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
}): StreamRounds {
  const { registry, isKeyLive, counts, now, random } = options;
  const timer = setInterval(tick, tickMs).unref();
  let turn = 0;

  function endWithKeys(): void {
    const nowMs = now();
    registry.each((stream) => {
      if (!isKeyLive(stream.keyId, nowMs)) endStream(stream, "key_ended");
    });
  }

  function endFarBehind(): void {
    const nowMs = now();
    registry.each((stream) => {
      if (isFarBehind(stream, nowMs)) endStream(stream, "slow_reader");
    });
  }

  function sendHeartbeats(): void {
    turn = (turn + 1) % streamSlots;
    const event = Buffer.from(heartbeatEvent(now()));
    for (const stream of registry.ofSlot(turn)) {
      if (!hasRoom(stream)) continue;
      sinkOf(stream).write(stream.kind === "flags" ? event : keepAlive);
      counts.heartbeat += 1;
    }
  }

  function tick(): void {
    endWithKeys();
    endFarBehind();
    sendHeartbeats();
  }

  return {
    endWithKeys,
    tick,
    async drain() {
      const leaving: Stream[] = [];
      registry.each((stream) => leaving.push(stream));
      const perStep = Math.ceil(leaving.length / drainSteps);
      for (let first = 0; first < leaving.length; first += perStep) {
        for (const stream of leaving.slice(first, first + perStep))
          endStream(stream, "drain", retryLine(random));
        await delay(drainMs / drainSteps);
      }
      // A reader that has not taken the end of its stream by now is cut off.
      for (const stream of leaving) stream.response.destroy();
    },
    stop: () => clearInterval(timer),
  };
}
