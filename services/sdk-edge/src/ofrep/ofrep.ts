import type { Endpoint } from "../sdk/endpoint.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import { createRefetchHub } from "../streams/refetch-hub.ts";
import type { Streams } from "../streams/streams.ts";
import { bulkEndpoint } from "./bulk-endpoint.ts";
import { createConfigurationTags } from "./configuration-tags.ts";
import { singleEndpoint } from "./single-endpoint.ts";
import { refetchStreamEndpoint } from "./stream-endpoint.ts";
import { createStreamTokens } from "./stream-tokens.ts";
import { createWaitingRefetches } from "./waiting-refetches.ts";

/** The OpenFeature Remote Evaluation Protocol: its endpoints, and what becomes of a change. */
export type Ofrep = {
  endpoints: Endpoint[];
  /** Follows from now on what changes; the values must be in place by the time that it hears of it. */
  follow(): void;
  stop(): void;
};

export function createOfrep(
  parts: SdkParts,
  options: {
    streamTokenSecret: string | undefined;
    streams: Pick<Streams, "registry" | "counts">;
    random: () => number;
  },
): Ofrep {
  const { holder, now } = parts;
  const { streamTokenSecret, streams, random } = options;
  const configurationTags = createConfigurationTags();
  const waiting = createWaitingRefetches();
  const refetchHub = createRefetchHub({
    registry: streams.registry,
    tagOf: configurationTags.of,
    counts: streams.counts,
    now,
    random,
    elapsed: () => performance.now(),
  });
  const tokens =
    streamTokenSecret === undefined ? undefined : createStreamTokens(streamTokenSecret);
  const ofrepParts = { ...parts, tokens, waiting, configurationTags, refetchHub };
  return {
    endpoints: [
      bulkEndpoint(ofrepParts),
      singleEndpoint(ofrepParts),
      refetchStreamEndpoint(ofrepParts),
    ],
    follow() {
      holder.subscribe((change) => {
        configurationTags.follow(change);
        for (const environmentId of change.changed.environments) {
          waiting.changed(environmentId);
          refetchHub.announce(environmentId);
        }
      });
    },
    stop: refetchHub.stop,
  };
}
