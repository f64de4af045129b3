import type { ServerResponse } from "node:http";
import type { DirectoryKey } from "@halyard/api-keys";
import { type ConfigurationTag, parseConfigurationTag } from "../environment/configuration-tag.ts";
import { createSpread } from "./spread.ts";
import { hasRoom, type RefetchStream, sinkOf } from "./stream.ts";
import { knownEvent, refetchEvent, retryLine } from "./stream-events.ts";
import type { StreamCounts, StreamRegistry } from "./stream-registry.ts";
import { streamSlots } from "./stream-rounds.ts";

/**
 * What the open streams of OpenFeature clients are told: that something has changed, and under which
 * tag. Each of them then asks for all its flags, and thousands of them would ask in the same moment;
 * so they are told in turn. Who waits for its turn is told the tag of that moment: a change that comes
 * meanwhile costs those nothing, and those who were told already wait again, behind them.
 */
export type RefetchHub = {
  /** Begins the body of an answer whose head is set, and keeps it going. */
  open(response: ServerResponse, listener: RefetchListener): void;
  /** Tells the streams of an environment to ask again. */
  announce(environmentId: string): void;
  stop(): void;
};

export type RefetchListener = {
  key: DirectoryKey;
  /** The tag that the client heard last, on an earlier stream. */
  lastEventId: string | undefined;
};

/**
 * Who opens its first stream has asked for its flags before that, and may have missed a change between
 * the two. After a change, newcomers are therefore told to ask again, for as long as a slow client may
 * take between the two, with some room for clocks that differ.
 */
const settlingMs = 15_000;

export function createRefetchHub(options: {
  registry: StreamRegistry;
  tagOf: (environmentId: string) => ConfigurationTag;
  counts: StreamCounts;
  now: () => number;
  random: () => number;
  /** Milliseconds that only ever grow. */
  elapsed: () => number;
}): RefetchHub {
  const { registry, tagOf, counts, now, random, elapsed } = options;
  const spread = createSpread<RefetchStream>({ turn: tell, elapsed });
  let opened = 0;

  function tell(stream: RefetchStream): void {
    if (hasRoom(stream)) {
      sinkOf(stream).write(refetchEvent(tagOf(stream.environmentId).text));
      counts.refetch += 1;
    } else if (stream.behind === undefined && !stream.response.writableEnded) {
      stream.behind = { sinceMs: now() };
      sinkOf(stream).once("drain", () => {
        stream.behind = undefined;
        tell(stream);
      });
    }
  }

  /** Whether the flags may have changed since the client asked for them. */
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

      opened += 1;
      const stream: RefetchStream = {
        kind: "refetch",
        response,
        keyId,
        environmentId,
        slot: opened % streamSlots,
        behind: undefined,
        cause: "client",
      };
      registry.add(stream);
      response.once("close", () => {
        registry.remove(stream);
        spread.remove(environmentId, stream);
        counts.closed[stream.cause] += 1;
      });
    },

    announce(environmentId) {
      const streams = registry.refetchStreamsOf(environmentId);
      if (streams.size > 0) spread.add(environmentId, streams);
    },

    stop: spread.stop,
  };
}
