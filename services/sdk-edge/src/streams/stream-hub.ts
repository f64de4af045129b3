import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import type { EnvironmentView } from "../environment/environment-view.ts";
import type { EnvironmentViews, ViewChange } from "../environment/environment-views.ts";
import { hasRoom, type Stream, sinkOf } from "./stream.ts";
import {
  catchUpEvent,
  changeEvent,
  fullEvent,
  heartbeatEvent,
  retryLine,
} from "./stream-events.ts";
import type { StreamCounts, StreamRegistry } from "./stream-registry.ts";
import { streamSlots } from "./stream-rounds.ts";

/**
 * What the open streams are told. A change becomes one event, which is handed to the streams of its
 * environment in one go, after the new values have taken the place of the old; so nobody who has seen
 * an event can be answered with older values afterwards.
 */
export type StreamHub = {
  /** Begins the body of an answer whose head is set, and keeps it going. */
  open(response: ServerResponse, key: DirectoryKey, lastEventId: string | undefined): void;
  /** Tells the streams of an environment what is different now. */
  broadcast(change: ViewChange): void;
};

export function createStreamHub(options: {
  registry: StreamRegistry;
  views: EnvironmentViews;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
}): StreamHub {
  const { registry, views, counts, now, random } = options;
  let opened = 0;

  function sendFlags(stream: Stream, event: Buffer): void {
    sinkOf(stream).write(event);
    counts.flags += 1;
  }

  /** From here on the reader gets nothing until it has taken all that is on its way. */
  function fallBehind(stream: Stream, heard: EnvironmentView): void {
    stream.behind = { sinceMs: now(), heard };
    sinkOf(stream).once("drain", () => catchUp(stream));
  }

  function catchUp(stream: Stream): void {
    if (stream.behind === undefined || stream.response.writableEnded) return;
    const { heard } = stream.behind;
    const present = views.of(stream.environmentId);
    stream.behind = undefined;
    if (present.etag !== heard.etag) sendFlags(stream, catchUpEvent(heard, present));
  }

  return {
    open(response, key, lastEventId) {
      const view = views.of(key.environmentId);
      const known = lastEventId === view.etag;
      const heartbeat = Buffer.from(heartbeatEvent(now()));
      const retry = Buffer.from(retryLine(random));
      response.write(
        Buffer.concat(known ? [retry, heartbeat] : [retry, fullEvent(view), heartbeat]),
      );
      counts.heartbeat += 1;
      if (!known) counts.flags += 1;

      opened += 1;
      const stream: Stream = {
        response,
        keyId: key.id,
        environmentId: key.environmentId,
        slot: opened % streamSlots,
        behind: undefined,
        cause: "client",
      };
      registry.add(stream);
      response.once("close", () => {
        registry.remove(stream);
        counts.closed[stream.cause] += 1;
      });
    },

    broadcast({ environmentId, before, after }) {
      const streams = registry.ofEnvironment(environmentId);
      if (streams.size === 0) return;
      const event = changeEvent(before, after);
      for (const stream of streams) {
        if (hasRoom(stream)) sendFlags(stream, event);
        else if (stream.behind === undefined) fallBehind(stream, before);
      }
    },
  };
}
