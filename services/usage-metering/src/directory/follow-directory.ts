import { everythingFilter } from "@halyard/contracts";
import { type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import type { Directory } from "./directory.ts";

/** Keeps what this service knows of the snapshot in step with it. */
export function followDirectory(options: {
  connection: NatsConnection;
  directory: Directory;
  /** The directory is up to date, at the start and after every interruption. */
  onCurrent: () => void;
  logger: Logger;
}): FollowedSnapshot {
  const { directory, onCurrent, logger } = options;
  return followSnapshot({
    connection: options.connection,
    filter: everythingFilter,
    logger,
    follower: {
      beginRead: directory.beginReplacing,
      isGenuineComplete: directory.keys.isGenuineComplete,
      isGenuineDeletion: directory.keys.isGenuineDeletion,
      current: onCurrent,
      apply: directory.apply,
      rejected(key, problem) {
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
