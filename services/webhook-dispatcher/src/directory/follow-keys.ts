import { type KeyDirectory, passToKeys } from "@halyard/api-keys";
import { keysAndPlacesFilter } from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/** Keeps what this service knows of API keys in step with the snapshot. */
export function followKeys(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  /** The keys are up to date, at the start and after every interruption. */
  onCurrent: () => void;
  logger: Logger;
}): FollowedSnapshot {
  const { keys, onCurrent, logger } = options;
  return followSnapshot({
    connection: options.connection,
    filter: keysAndPlacesFilter,
    logger,
    follower: {
      beginRead() {
        const read = keys.beginReplacing();
        return { take: (entry) => passToKeys(read, entry), finish: read.finish };
      },
      isGenuineComplete: keys.isGenuineComplete,
      current: onCurrent,
      apply: (entry) => passToKeys(keys, entry),
      rejected(key, problem) {
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
