import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
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
import { knownEvent, refetchEvent, retryLine } from "./stream-events.ts";

/**
 * The open streams of OpenFeature clients. After a change they receive the new tag and then request all their
 * flags. The events are paced, because thousands of clients would otherwise send that request at once. A
 * stream gets the tag of the moment in which its turn comes, so later changes cost a waiting stream nothing.
 */
export type RefetchHub = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: RefetchListener): void;
  /** Sends the streams of an environment the present tag. */
  notify(environmentId: string): void;
  stop(): void;
};

export type RefetchListener = {
  key: DirectoryKey;
  /** The tag that the client received last, on an earlier stream. */
  lastEventId: string | undefined;
};

/**
 * A client requests its flags before it opens its first stream, and may miss a change between the two. So for
 * this time after a change, new streams begin with a refetch. It covers slow clients and clocks that differ.
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

  /** Whether the flags may have changed since the client requested them. */
  function mayHaveMissed(lastEventId: string | undefined, present: ConfigurationTag): boolean {
    if (lastEventId === undefined) return now() - present.newestMs < settlingMs;
    return parseConfigurationTag(lastEventId)?.hash !== present.hash;
  }

  return {
    open(response, { key, lastEventId }) {
      const { id: keyId, environmentId } = key;
      const present = tagOf(environmentId);
      const missed = mayHaveMissed(lastEventId, present);
      const event = missed ? refetchEvent(present.text) : knownEvent(present.text);
      response.write(`${retryLine(random)}${event}`);
      if (missed) counts.refetch += 1;

      const stream: Stream = {
        kind: "refetch",
        ...{ response, keyId, environmentId },
        behind: undefined,
        cause: "client",
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
