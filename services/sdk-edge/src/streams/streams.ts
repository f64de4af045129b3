import { createRefetchStreams, type RefetchStreams } from "./refetch-streams.ts";
import { createRulesetStreams, type RulesetStreams } from "./ruleset-streams.ts";
import {
  createStreamRegistry,
  type StreamOptions,
  type StreamRegistry,
} from "./stream-registry.ts";
import { createStreamUpkeep, type StreamUpkeep } from "./stream-upkeep.ts";
import { createValueStreams, type ValueStreams } from "./value-streams.ts";

/** The open streams of an edge: their registry, their upkeep, and what is sent to each kind. */
export type Streams = {
  open: StreamRegistry;
  upkeep: StreamUpkeep;
  values: ValueStreams;
  rulesets: RulesetStreams;
  refetches: RefetchStreams;
  /** Sends a change of an environment to its streams. */
  notify(environmentId: string): void;
  stop(): void;
};

export function createStreams(
  options: Omit<StreamOptions, "openStreams"> & {
    isKeyLive: (keyId: string, nowMs: number) => boolean;
  },
): Streams {
  const openStreams = createStreamRegistry();
  const given = { ...options, openStreams };
  const values = createValueStreams(given);
  const rulesets = createRulesetStreams(given);
  const refetches = createRefetchStreams(given);
  const upkeep = createStreamUpkeep(given);
  return {
    ...{ open: openStreams, upkeep, values, rulesets, refetches },
    notify(environmentId) {
      for (const kind of [values, rulesets, refetches]) kind.notify(environmentId);
    },
    stop() {
      for (const part of [upkeep, values, rulesets, refetches]) part.stop();
    },
  };
}
