import type { KeyDirectory } from "@halyard/api-keys";
import type { Logger } from "@halyard/service";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { Limits } from "../limits/limits.ts";
import type { WrongKeys } from "../limits/wrong-keys.ts";
import type { StreamSlots } from "../slots/stream-slots.ts";
import type { SnapshotHolder } from "../snapshot/snapshot-holder.ts";
import type { StreamHub } from "../streams/stream-hub.ts";
import type { Usage } from "../usage/usage.ts";
import type { AnswerCounts } from "./answer-counts.ts";
import type { RejectToken } from "./by-bearer.ts";
import type { Evaluation } from "./evaluation.ts";

/** What it takes to answer SDKs. */
export type SdkParts = {
  holder: SnapshotHolder;
  directory: KeyDirectory;
  views: EnvironmentViews;
  hub: StreamHub;
  counts: AnswerCounts;
  evaluation: Evaluation;
  isDraining: () => boolean;
  limits: Limits;
  wrongKeys: WrongKeys;
  rejectToken: RejectToken;
  /** Undefined: nothing is counted, and nothing is limited by plan. */
  usage: Usage | undefined;
  /** Undefined: streams are not limited by plan. */
  slots: StreamSlots | undefined;
  logger: Logger;
  now: () => number;
};
