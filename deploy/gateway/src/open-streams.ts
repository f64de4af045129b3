import type { ServerResponse } from "node:http";
import { pause } from "@halyard/timing";

/**
 * The open streams. A gateway that stops ends them in small groups, because all readers reconnect within moments, and a
 * reconnection of all at the same time would overload the other gateways.
 */
export type OpenStreams = {
  add: (response: ServerResponse) => void;
  drain: () => Promise<void>;
};

const groupIntervalMs = 50;
const minGroupSize = 50;

/** Maximum duration of the drain for any number of streams, well within the time that a process has to stop. */
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
