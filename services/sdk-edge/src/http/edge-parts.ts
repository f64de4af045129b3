import type { KeyDirectory } from "@halyard/api-keys";
import type { Logger } from "@halyard/service";
import type { Limits } from "../admission/limits.ts";
import type { StreamSlots } from "../admission/stream-slots.ts";
import type { ConfigurationTags } from "../answers/configuration-tags.ts";
import type { EnvironmentViews } from "../answers/environment-views.ts";
import type { Rulesets } from "../answers/rulesets.ts";
import type { WaitingRequests } from "../answers/waiting-requests.ts";
import type { ReplacedChunks } from "../snapshot/replaced-chunks.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import type { RefetchStreams } from "../streams/refetch-streams.ts";
import type { RulesetStreams } from "../streams/ruleset-streams.ts";
import type { StreamRegistry } from "../streams/stream-registry.ts";
import type { StreamUpkeep } from "../streams/stream-upkeep.ts";
import type { ValueStreams } from "../streams/value-streams.ts";
import type { PublishReport } from "../usage/publish-report.ts";
import type { Usage } from "../usage/usage.ts";
import type { AnswerCounts } from "./answer-counts.ts";
import type { Authenticate } from "./authentication.ts";
import type { Evaluation } from "./evaluation.ts";

/** The upkeep of the open streams, and what is sent to each kind. */
export type Streams = {
  upkeep: StreamUpkeep;
  values: ValueStreams;
  rulesets: RulesetStreams;
  refetches: RefetchStreams;
};

/** The parts of an edge that its routes use. Each route takes those that it needs. */
export type EdgeParts = {
  // The snapshot, and its API keys.
  holder: SnapshotHolder;
  directory: KeyDirectory;
  isKeyLive: (keyId: string, nowMs: number) => boolean;
  // Derived from the snapshot. `applyUpdates` updates it.
  views: EnvironmentViews;
  configurationTags: ConfigurationTags;
  waiting: WaitingRequests;
  replacedChunks: ReplacedChunks;
  rulesets: Rulesets;
  openStreams: StreamRegistry;
  streams: Streams;
  // Admission and counting of requests.
  byBearer: Authenticate;
  byEitherHeader: Authenticate;
  limits: Limits;
  /** Undefined: requests are not counted and not limited by plan. */
  usage: Usage | undefined;
  /** Undefined: streams are not limited by plan. */
  slots: StreamSlots | undefined;
  // Responses.
  evaluation: Evaluation;
  counts: AnswerCounts;
  /** Undefined: no report can be stored. */
  publishReport: PublishReport | undefined;
  // The process.
  isDraining: () => boolean;
  logger: Logger;
  now: () => number;
};
