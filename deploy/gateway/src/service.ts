import { createSlots, type Slots } from "./slots.ts";
import { createUpstreams, type Upstreams } from "./upstreams.ts";

/** The processes of one service, and the slots for requests to them. */
export type Service = {
  upstreams: Upstreams;
  slots: Slots;
  /**
   * Separate slots for requests whose large bodies are still arriving, so that slow uploads delay only other uploads.
   */
  slotsForUploads: Slots;
};

/** Slots for uploads as a share of `MAX_REQUESTS_PER_UPSTREAM`. They are additional. */
const uploadsPerRequest = 1 / 4;

/**
 * Maximum wait for a slot. It covers a burst of reconnecting streams: an `EventSource` that receives a 503 never
 * reconnects.
 */
const maxWaitMs = 10_000;

export type ServiceLimits = { requestsPerUpstream: number; waitingRequests: number };

export function createService(
  origins: readonly URL[],
  { requestsPerUpstream, waitingRequests }: ServiceLimits,
): Service {
  const upstreams = createUpstreams(origins);
  const slots = (perUpstream: number) =>
    createSlots(upstreams, { perUpstream, maxWaiting: waitingRequests, maxWaitMs });
  return {
    upstreams,
    slots: slots(requestsPerUpstream),
    slotsForUploads: slots(Math.ceil(requestsPerUpstream * uploadsPerRequest)),
  };
}
