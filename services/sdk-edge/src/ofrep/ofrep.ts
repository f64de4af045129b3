import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import type { SnapshotUpdate } from "../snapshot/snapshot-holder.ts";
import { createRefetchHub } from "../streams/refetch-hub.ts";
import type { Streams } from "../streams/streams.ts";
import { bulkRoute } from "./bulk.ts";
import { createConfigurationTags } from "./configuration-tags.ts";
import { singleRoute } from "./single.ts";
import { refetchStreamRoute } from "./stream.ts";
import { createStreamTokens } from "./stream-tokens.ts";
import { createWaitingRefetches } from "./waiting-refetches.ts";

/** The OpenFeature Remote Evaluation Protocol: its routes, and the effects of an update of the snapshot. */
export type Ofrep = {
  routes: EdgeRoute[];
  /** Applies an update of the snapshot. The views must have been updated before. */
  follow(update: SnapshotUpdate): void;
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
  const configurationTags = createConfigurationTags();
  const waiting = createWaitingRefetches();
  const refetchHub = createRefetchHub({
    openStreams: streams.openStreams,
    tagOf: configurationTags.of,
    counts: streams.counts,
    now: parts.now,
    random,
    monotonicMs,
  });
  const tokens =
    streamTokenSecret === undefined ? undefined : createStreamTokens(streamTokenSecret);
  return {
    routes: [
      bulkRoute({ ...parts, tokens, waiting, configurationTags }),
      singleRoute(parts),
      refetchStreamRoute(parts, { tokens, refetchHub }),
    ],
    follow(update) {
      configurationTags.follow(update);
      for (const environmentId of update.changed.environments) {
        waiting.changed(environmentId);
        refetchHub.notify(environmentId);
      }
    },
    stop: refetchHub.stop,
  };
}
