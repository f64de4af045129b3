import { releaseAll } from "@halyard/service";
import type { Registry } from "prom-client";
import { type ClaimTimes, defaultClaimTimes } from "./claimed-delivery.ts";
import { createDispatchMetrics } from "./dispatch-metrics.ts";
import { type Dispatcher, startDispatcher } from "./dispatcher.ts";
import { watchForExpiredClaims } from "./expired-claims.ts";
import { createMakeAttempt, type MakeAttemptOptions } from "./make-attempt.ts";
import { type Bounds, defaultBounds } from "./plan-claims.ts";

/** The sending of what is due: by this process, and once more of what a dead one had claimed. */
export function startDispatch(
  options: Omit<MakeAttemptOptions, "metrics"> & {
    metrics: Registry;
    bounds?: Bounds;
    claimTimes?: ClaimTimes;
  },
): Omit<Dispatcher, "held"> {
  const { claimTimes = defaultClaimTimes } = options;
  const metrics = createDispatchMetrics(options.metrics);
  const dispatcher = startDispatcher({
    bounds: defaultBounds,
    ...options,
    claimTimes,
    metrics,
    makeAttempt: createMakeAttempt({ ...options, metrics }),
  });
  const expired = watchForExpiredClaims({
    ...options,
    claimTimes,
    held: dispatcher.held,
    onFreed: dispatcher.wake,
  });
  return {
    wake: dispatcher.wake,
    stop: () => releaseAll([dispatcher.stop, expired.stop]),
  };
}
