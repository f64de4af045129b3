export { backoffMs, retry } from "./backoff.ts";
export { type Interval, startInterval } from "./interval.ts";
export { pause } from "./pause.ts";
export { createTimeSlicer, runSteps, type Steps } from "./time-slicer.ts";
export { createWakeUp, type WakeUp } from "./wake-up.ts";
