import type { ServerResponse } from "node:http";
import { pause } from "@halyard/timing";

/**
 * Streams end only when somebody ends them. A gateway that stops does so in small groups, because all
 * the readers come back within moments and somebody has to take them in.
 */
export type OpenStreams = {
  add: (response: ServerResponse) => void;
  drain: () => Promise<void>;
};

const groupIntervalMs = 50;
const minGroupSize = 50;

/** Well within the time that a service has to stop, whatever the number of streams. */
const maxDrainMs = 3_000;

export function createOpenStreams(): OpenStreams {
  const open = new Set<ServerResponse>();
  let drained = false;
  return {
    add(response) {
      if (drained) {
        response.destroy();
        return;
      }
      open.add(response);
      response.once("close", () => open.delete(response));
    },

    async drain() {
      const groups = maxDrainMs / groupIntervalMs;
      const groupSize = Math.max(minGroupSize, Math.ceil(open.size / groups));
      while (open.size > 0) {
        for (const response of [...open].slice(0, groupSize)) {
          open.delete(response);
          response.destroy();
        }
        if (open.size > 0) await pause(groupIntervalMs);
      }
      drained = true;
    },
  };
}
