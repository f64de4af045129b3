import { setTimeout as delay } from "node:timers/promises";
import { heartbeatEvent, keepAlive, retryLine } from "@halyard/http";
import {
  heartbeatGroups,
  heartbeatIntervalMs,
  type OpenStream,
  rulesetHeartbeatIntervalMs,
  type StreamRegistry,
} from "./stream-registry.ts";

/**
 * Regular work on the open streams, by one timer for all of them. Each tick sends the heartbeats of one group, and those
 * of the streams of rules in four more. It also ends the streams whose key has ended or whose client is too far behind.
 */
export type StreamUpkeep = {
  endStreamsOfEndedKeys(): void;
  tick(): void;
  /** Ends all streams over a few seconds, so that their clients connect to other edges. */
  drain(): Promise<void>;
  stop(): void;
};

/** Interval of the ticks. It is also the maximum delay until a stream ends after its key has expired. */
const tickMs = heartbeatIntervalMs / heartbeatGroups;
/** Distance between the groups whose streams of rules get a heartbeat in the same tick. */
const rulesetGroupDistance = rulesetHeartbeatIntervalMs / tickMs;

/** Time over which the clients of a stopping edge connect to other edges. */
const drainMs = 3_000;
const drainSteps = 60;

export function createStreamUpkeep(options: {
  openStreams: StreamRegistry;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  now: () => number;
  random: () => number;
  pause?: (ms: number) => Promise<unknown>;
}): StreamUpkeep {
  const { openStreams, isKeyLive, now, random, pause = delay } = options;
  const timer = setInterval(tick, tickMs).unref();
  let group = 0;

  function endStreamsOfEndedKeys(): void {
    const nowMs = now();
    openStreams.each((stream) => {
      if (!isKeyLive(stream.key.id, nowMs)) stream.close("key_ended");
    });
  }

  function endFarBehind(): void {
    const nowMs = now();
    openStreams.each((stream) => {
      if (stream.isFarBehind(nowMs)) stream.close("slow_reader");
    });
  }

  function sendHeartbeats(): void {
    group = (group + 1) % heartbeatGroups;
    const nowMs = now();
    const events = {
      flags: Buffer.from(heartbeatEvent(nowMs)),
      ruleset: Buffer.from(heartbeatEvent(nowMs, { intervalMs: rulesetHeartbeatIntervalMs })),
      refetch: keepAlive,
    };
    for (
      let some = group % rulesetGroupDistance;
      some < heartbeatGroups;
      some += rulesetGroupDistance
    )
      for (const stream of openStreams.ofHeartbeatGroup(some)) {
        if (!stream.hasRoom || (some !== group && stream.kind !== "ruleset")) continue;
        stream.sink.write(events[stream.kind]);
        openStreams.counts.heartbeat += 1;
      }
  }

  function tick(): void {
    endStreamsOfEndedKeys();
    endFarBehind();
    sendHeartbeats();
  }

  return {
    endStreamsOfEndedKeys,
    tick,
    async drain() {
      const leaving: OpenStream[] = [];
      openStreams.each((stream) => leaving.push(stream));
      const perStep = Math.ceil(leaving.length / drainSteps);
      for (let first = 0; first < leaving.length; first += perStep) {
        for (const stream of leaving.slice(first, first + perStep))
          stream.close("drain", retryLine(random));
        await pause(drainMs / drainSteps);
      }
      // A client that has not read the end of its stream by now is disconnected.
      for (const stream of leaving) stream.response.destroy();
    },
    stop: () => clearInterval(timer),
  };
}
