export { type Backoff, backoffMs, type RetryOptions, retry } from "./backoff.ts";
export { type Interval, type IntervalOptions, startInterval } from "./interval.ts";
export { pause } from "./pause.ts";
export { createTimeSlicer, runSteps, type Steps, type TimeSlicer } from "./time-slicer.ts";
export { createWakeUp, type WakeUp } from "./wake-up.ts";
