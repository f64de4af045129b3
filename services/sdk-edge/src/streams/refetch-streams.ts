import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { retryLine } from "@halyard/http";
import { type ConfigurationTag, parseConfigurationTag } from "../answers/configuration-tags.ts";
import { createPacedQueue } from "./paced-queue.ts";
import { OpenStream, type StreamOptions } from "./stream-registry.ts";

/**
 * The open streams of OpenFeature clients. After a change, each client receives the new tag and then requests all its
 * flags. The events are paced, because otherwise thousands of clients would send that request at the same time. Each
 * event contains the tag that is current when it is sent, so later changes cost a waiting stream nothing.
 */
export type RefetchStreams = {
  /** Begins the body of a response whose head is set. */
  open(response: ServerResponse, listener: RefetchListener): void;
  stop(): void;
};

type RefetchListener = {
  key: DirectoryKey;
  /** The tag that the client received last, on an earlier stream. */
  lastEventId: string | undefined;
};

/**
 * Time after a change in which new streams begin with a refetch. A client requests its flags before it opens its first
 * stream, and may miss a change between the two. The time covers slow clients and clocks that differ.
 */
const settlingMs = 15_000;

export function createRefetchStreams(options: StreamOptions): RefetchStreams {
  const { openStreams, tagOf, now, random, monotonicMs } = options;
  const { counts } = openStreams;
  const queue = createPacedQueue<OpenStream>({ serve: send, monotonicMs });
  const streams = openStreams.ofKind<OpenStream>({
    notify: queue.add,
    onClose: (stream) => queue.remove(stream.key.environmentId, stream),
  });

  function send(stream: OpenStream): void {
    if (!stream.hasRoomOrFallsBehind(now(), () => send(stream))) return;
    stream.sink.write(refetchEvent(tagOf(stream.key.environmentId).text));
    counts.refetch += 1;
  }

  /** Returns whether the flags may have changed since the client requested them. */
  function mayHaveMissed(lastEventId: string | undefined, present: ConfigurationTag): boolean {
    if (lastEventId === undefined) return now() - present.newestMs < settlingMs;
    return parseConfigurationTag(lastEventId)?.hash !== present.hash;
  }

  return {
    open(response, { key, lastEventId }) {
      const present = tagOf(key.environmentId);
      const missed = mayHaveMissed(lastEventId, present);
      const event = missed ? refetchEvent(present.text) : tagEvent(present.text);
      response.write(`${retryLine(random)}${event}`);
      if (missed) counts.refetch += 1;
      streams.add(new OpenStream("refetch", response, key));
    },

    stop: queue.stop,
  };
}

/** Makes an OpenFeature client evaluate again. The client sends the tag with that request. */
function refetchEvent(configurationTag: string): string {
  return `id: ${configurationTag}\ndata: {"type":"refetchEvaluation","etag":"${configurationTag}"}\n\n`;
}

/**
 * Gives an OpenFeature client the tag without causing a request, because clients ignore events of an unknown type.
 * After a lost connection the client sends the tag, and then receives a refetch if it missed a change.
 */
function tagEvent(configurationTag: string): string {
  return `id: ${configurationTag}\ndata: {"type":"connected"}\n\n`;
}
