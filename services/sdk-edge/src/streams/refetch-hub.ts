import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { retryLine } from "@halyard/service";
import { type ConfigurationTag, parseConfigurationTag } from "../environment/configuration-tag.ts";
import { createPacedQueue } from "./paced-queue.ts";
import {
  createStreamGroups,
  hasRoomOrFallsBehind,
  type OpenStreams,
  type Stream,
  type StreamCounts,
  sinkOf,
} from "./stream.ts";
import { refetchEvent, tagEvent } from "./stream-events.ts";

/**
 * The open streams of OpenFeature clients. After a change, each client receives the new tag and then requests all its
 * flags. The events are paced, because otherwise thousands of clients would send that request at the same time. Each
 * event contains the tag that is current when it is sent, so later changes cost a waiting stream nothing.
 */
export type RefetchHub = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: RefetchListener): void;
  /** Sends the current tag to the streams of an environment. */
  notify(environmentId: string): void;
  stop(): void;
};

export type RefetchListener = {
  key: DirectoryKey;
  /** The tag that the client received last, on an earlier stream. */
  lastEventId: string | undefined;
};

/**
 * Time after a change in which new streams begin with a refetch. A client requests its flags before it opens its first
 * stream, and may miss a change between the two. The time covers slow clients and clocks that differ.
 */
const settlingMs = 15_000;

export function createRefetchHub(options: {
  openStreams: OpenStreams;
  tagOf: (environmentId: string) => ConfigurationTag;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
  /** Monotonic clock in milliseconds. */
  monotonicMs: () => number;
}): RefetchHub {
  const { openStreams, tagOf, counts, now, random, monotonicMs } = options;
  const groups = createStreamGroups<Stream>();
  const queue = createPacedQueue<Stream>({ serve: send, monotonicMs });

  function send(stream: Stream): void {
    const onCaughtUp = () => send(stream);
    if (!hasRoomOrFallsBehind(stream, { nowMs: now(), onCaughtUp })) return;
    sinkOf(stream).write(refetchEvent(tagOf(stream.environmentId).text));
    counts.refetch += 1;
  }

  /** Returns whether the flags may have changed since the client requested them. */
  function mayHaveMissed(lastEventId: string | undefined, present: ConfigurationTag): boolean {
    if (lastEventId === undefined) return now() - present.newestMs < settlingMs;
    return parseConfigurationTag(lastEventId)?.hash !== present.hash;
  }

  return {
    open(response, { key, lastEventId }) {
      const { id: keyId, environmentId } = key;
      const present = tagOf(environmentId);
      const missed = mayHaveMissed(lastEventId, present);
      const event = missed ? refetchEvent(present.text) : tagEvent(present.text);
      response.write(`${retryLine(random)}${event}`);
      if (missed) counts.refetch += 1;

      const stream: Stream = {
        kind: "refetch",
        ...{ response, keyId, environmentId },
        behind: undefined,
        closeCause: "client",
      };
      groups.add(stream);
      openStreams.add(stream, () => {
        groups.remove(stream);
        queue.remove(environmentId, stream);
      });
    },

    notify(environmentId) {
      const streams = groups.of(environmentId);
      if (streams.size > 0) queue.add(environmentId, streams);
    },

    stop: queue.stop,
  };
}
