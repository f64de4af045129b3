import type { KeyDirectory } from "@halyard/api-keys";
import type { ConfigurationTags } from "../environment/configuration-tags.ts";
import type { EnvironmentViews } from "../environment/environment-views.ts";
import type { WaitingRequests } from "../environment/waiting-requests.ts";
import type { Authenticate } from "../http/authentication.ts";
import type { RouteParts } from "../http/routes.ts";
import type { StreamSlots } from "../slots/stream-slots.ts";
import type { StreamHub } from "../streams/stream-hub.ts";
import type { Evaluation } from "./evaluation.ts";

/** Parts that the routes for SDKs need. */
export type SdkParts = RouteParts & {
  directory: KeyDirectory;
  byBearer: Authenticate;
  byEitherHeader: Authenticate;
  views: EnvironmentViews;
  configurationTags: ConfigurationTags;
  waiting: WaitingRequests;
  hub: StreamHub;
  evaluation: Evaluation;
  /** Undefined: streams are not limited by plan. */
  slots: StreamSlots | undefined;
};
