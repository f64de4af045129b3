import type { SdkParts } from "../sdk/sdk-parts.ts";
import type { RefetchHub } from "../streams/refetch-hub.ts";
import type { ConfigurationTags } from "./configuration-tags.ts";
import type { StreamTokens } from "./stream-tokens.ts";
import type { WaitingRefetches } from "./waiting-refetches.ts";

/** What it takes to answer OpenFeature clients. */
export type OfrepParts = SdkParts & {
  /** Undefined: no streams are offered. */
  tokens: StreamTokens | undefined;
  waiting: WaitingRefetches;
  configurationTags: ConfigurationTags;
  refetchHub: RefetchHub;
};
