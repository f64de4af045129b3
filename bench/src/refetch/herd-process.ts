import { setPriority } from "node:os";
import { answerParent } from "../processes/answer-parent.ts";
import { createArrivals, repeatAtOnce } from "../processes/arrivals.ts";
import { openRefetchingClient } from "./refetching-client.ts";

/**
 * Many simulated OpenFeature web providers. They have a lower priority than the polling client, because they
 * share a core here but not in reality.
 */
const behindOthers = 10;
setPriority(behindOthers);

const refetches = createArrivals("refetches");
let clients = 0;
let errors = 0;

const api = {
  /** Each client evaluates all flags with its own context, and opens the offered stream. */
  async open(options: { url: string; key: string; clients: number }) {
    clients = options.clients;
    await repeatAtOnce({ count: clients, atOnce: 50 }, (number) =>
      openRefetchingClient({ ...options, number: number + 1, onRefetched }),
    );
  },

  /** Starts waiting for the next refetch of each client. */
  arm() {
    refetches.expect(clients);
    errors = 0;
  },

  /** Returns the time of each response, and the number of responses other than 200 and 304. */
  async refetches() {
    return { moments: await refetches.all(), errors };
  },
};
export type HerdApi = typeof api;
answerParent(api);

function onRefetched(status: number): void {
  if (status !== 200 && status !== 304) errors += 1;
  refetches.arrived();
}
