import { type Refusal, refuse } from "@halyard/service";

/** Has no `Retry-After`, because the time at which a stream closes is unknown. */
export function noSlotFree(limit: number): Refusal {
  return refuse(
    "RATE_001",
    `All ${limit} streams of the plan are open; close one or retry later.`,
    {
      "ratelimit-policy": `"sse";q=${limit};qu="concurrent-requests"`,
      ratelimit: `"sse";r=0`,
    },
  );
}

export const slotsUnknown = refuse(
  "SERVER_002",
  "The number of open streams is unavailable; retry after 1 s.",
);
