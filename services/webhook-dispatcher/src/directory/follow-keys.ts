import type { KeyDirectory } from "@halyard/api-keys";
import { allKeysFilter, type KeyEntry, type Tombstone } from "@halyard/contracts";
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
    filter: allKeysFilter,
    logger,
    follower: {
      beginRead() {
        const { take, finish } = keys.beginReplacing();
        return {
          take({ address, value }) {
            if (address.kind === "key") take(address, value as KeyEntry | Tombstone);
          },
          finish,
        };
      },
      isGenuineComplete: keys.isGenuineComplete,
      current: onCurrent,
      apply({ address, value }) {
        if (address.kind === "key") keys.apply(address, value as KeyEntry | Tombstone);
      },
      rejected(key, problem) {
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
