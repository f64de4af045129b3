import type { EdgeRoute } from "../http/routes.ts";
import type { SdkParts } from "../sdk/sdk-parts.ts";
import { createRulesetHub } from "../streams/ruleset-hub.ts";
import type { Streams } from "../streams/streams.ts";
import { rulesetRoute } from "./ruleset-route.ts";
import { rulesetStreamRoute } from "./ruleset-stream-route.ts";
import { createRulesets } from "./rulesets.ts";

/** The rules of all flags for SDKs: the routes, and the effect of a change of an environment. */
export type RulesetEndpoints = {
  routes: EdgeRoute[];
  /** Sends each stream of an environment the changed flags. */
  notify(environmentId: string): void;
  stop(): void;
};

export function createRulesetEndpoints(
  parts: SdkParts,
  options: {
    streams: Pick<Streams, "openStreams" | "counts">;
    random: () => number;
    /** Monotonic clock in milliseconds. */
    monotonicMs: () => number;
  },
): RulesetEndpoints {
  const { views, now } = parts;
  const { streams, random, monotonicMs } = options;
  const { openStreams, counts } = streams;
  const tagOf = parts.configurationTags.of;
  const rulesets = createRulesets({ views, tagOf, monotonicMs });
  const hub = createRulesetHub({ openStreams, counts, views, tagOf, now, random, monotonicMs });
  return {
    routes: [rulesetRoute(parts, rulesets), rulesetStreamRoute(parts, { rulesets, hub })],
    notify: hub.notify,
    stop() {
      rulesets.stop();
      hub.stop();
    },
  };
}
