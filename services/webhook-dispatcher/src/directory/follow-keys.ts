import { type KeyDirectory, passToKeys } from "@halyard/api-keys";
import { keysAndPlacesFilter } from "@halyard/contracts";
import { type DeletedPlaces, type FollowedSnapshot, followSnapshot } from "@halyard/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";

/** Keeps what this service knows of API keys and deleted projects in step with the snapshot. */
export function followKeys(options: {
  connection: NatsConnection;
  keys: KeyDirectory;
  deletedProjects: Pick<DeletedPlaces, "apply" | "resume" | "beginReplacing">;
  /** The keys are up to date, at the start and after every interruption. */
  onCurrent: () => void;
  logger: Logger;
}): FollowedSnapshot {
  const { keys, deletedProjects, onCurrent, logger } = options;
  return followSnapshot({
    connection: options.connection,
    filter: keysAndPlacesFilter,
    logger,
    follower: {
      beginRead() {
        const [keyRead, projectRead] = [keys.beginReplacing(), deletedProjects.beginReplacing()];
        return {
          take(entry) {
            passToKeys(keyRead, entry);
            projectRead.take(entry);
          },
          finish() {
            keyRead.finish();
            projectRead.finish();
          },
        };
      },
      isGenuineComplete: keys.isGenuineComplete,
      isGenuineDeletion: keys.isGenuineDeletion,
      current: onCurrent,
      resume(_epoch, entries) {
        for (const entry of entries) {
          passToKeys(keys, entry);
          deletedProjects.resume(entry);
        }
      },
      apply(entry) {
        passToKeys(keys, entry);
        deletedProjects.apply(entry);
      },
      rejected(key, problem) {
        logger.error({ key, problem }, "an entry of the snapshot was left out");
      },
    },
  });
}
