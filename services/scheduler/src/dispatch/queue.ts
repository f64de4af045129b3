import { scheduleStream } from "@halyard/contracts";
import { JetStreamApiCodes, JetStreamApiError, type JetStreamManager } from "@nats-io/jetstream";

/** How many messages are on their way between scheduler and management, in either direction. */
export async function countQueued(manager: JetStreamManager): Promise<number> {
  try {
    return (await manager.streams.info(scheduleStream.name)).state.messages;
  } catch (error) {
    if (!(error instanceof JetStreamApiError)) throw error;
    if (error.code !== JetStreamApiCodes.StreamNotFound) throw error;
    // Until it is made again it holds nothing.
    return 0;
  }
}
