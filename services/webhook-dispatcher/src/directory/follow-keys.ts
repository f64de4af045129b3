import type { KeyDirectory } from "@halyard/api-keys";
import { allKeysFilter, type KeyEntry, type Tombstone } from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/** Keeps what this service knows of API keys in step with the snapshot. */
export function followKeys(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  /** All keys were read, at the start and after every loss of the connection. */
  onReadAnew: () => void;
  logger: Logger;
}): FollowedSnapshot {
  const { keys, onReadAnew, logger } = options;
  return followSnapshot({
    connection: options.connection,
    filter: allKeysFilter,
    logger,
    follower: {
      replace(_epoch, entries) {
        keys.replace(
          entries.flatMap(({ address, value }) =>
            address.kind === "key" ? [[address.keyId, value as KeyEntry | Tombstone] as const] : [],
          ),
        );
        onReadAnew();
      },
      apply({ address, value }) {
        if (address.kind === "key") keys.apply(address.keyId, value as KeyEntry | Tombstone);
      },
      rejected(key, problem) {
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
