import { scheduleStream } from "@halyard/contracts";
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";
import type { Queue } from "./lost-changes.ts";

/** Which messages are on their way between scheduler and management, in either direction. */
export async function readQueue(manager: JetStreamManager): Promise<Queue> {
  try {
    const { state } = await manager.streams.info(scheduleStream.name);
    const { first_seq, last_seq: last } = state;
    return { first: state.messages === 0 ? last + 1 : first_seq, last };
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error;
    if (error.code !== JetStreamApiCodes.StreamNotFound) throw error;
    // Until it is made again it holds nothing.
    return { first: 1, last: 0 };
  }
}
