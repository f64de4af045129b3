import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import { createRefetchHub } from "../streams/refetch-hub.ts";
import type { Streams } from "../streams/streams.ts";
import { bulkRoute } from "./bulk.ts";
import { singleRoute } from "./single.ts";
import { refetchStreamRoute } from "./stream.ts";
import { createStreamTokens } from "./stream-tokens.ts";

/** The OpenFeature Remote Evaluation Protocol: its routes, and the effect of a change of an environment. */
export type Ofrep = {
  routes: EdgeRoute[];
  /** Sends the current tag to the streams of an environment. */
  notify(environmentId: string): void;
  stop(): void;
};

export function createOfrep(
  parts: SdkParts,
  options: {
    streamTokenSecret: string | undefined;
    streams: Pick<Streams, "openStreams" | "counts">;
    random: () => number;
    /** Monotonic clock in milliseconds. */
    monotonicMs: () => number;
  },
): Ofrep {
  const { streamTokenSecret, streams, random, monotonicMs } = options;
  const refetchHub = createRefetchHub({
    openStreams: streams.openStreams,
    tagOf: parts.configurationTags.of,
    counts: streams.counts,
    now: parts.now,
    random,
    monotonicMs,
  });
  const tokens =
    streamTokenSecret === undefined ? undefined : createStreamTokens(streamTokenSecret);
  return {
    routes: [
      bulkRoute({ ...parts, tokens }),
      singleRoute(parts),
      refetchStreamRoute(parts, { tokens, refetchHub }),
    ],
    notify: refetchHub.notify,
    stop: refetchHub.stop,
  };
}
