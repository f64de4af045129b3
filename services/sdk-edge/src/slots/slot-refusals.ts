import { type Refusal, refuse } from "@halyard/service";

/** No time is named at which there will be a slot: that is when a stream closes. */
export function noSlotFree(limit: number): Refusal {
  return refuse(
    "RATE_001",
    `All streams that the plan allows are open (${limit}); close one, or ask again later`,
    {
      "ratelimit-policy": `"sse";q=${limit};qu="concurrent-requests"`,
      ratelimit: `"sse";r=0`,
    },
  );
}

export const slotsUnknown = refuse(
  "SERVER_002",
  "It cannot be found out now whether another stream may be opened; try again",
);
