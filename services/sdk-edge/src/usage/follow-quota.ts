import { checkQuotaEntry, quotaBucket } from "@halyard/contracts";
import { type FollowedStream, followBucket, parseJson } from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Counting } from "./counting.ts";

/** Hears what usage-metering has counted, for as long as the process lives. */
export type FollowedQuota = {
  /** True while all numbers are known, as far as one can know. */
  isCurrent(): boolean;
  stop(): Promise<void>;
};

export function followQuota(options: {
  connection: Promise<NatsConnection>;
  counting: Counting;
  logger: Logger;
}): FollowedQuota {
  const { counting, logger } = options;
  let followed: FollowedStream | undefined;
  let stopped = false;

  // Until management has created the bucket, nothing is known, and nothing was used.
  void options.connection.then((connection) => {
    if (stopped) return;
    followed = followBucket({
      connection,
      bucket: quotaBucket,
      filter: "*",
      onEntry({ key, payload }) {
        const checked = checkQuotaEntry(parseJson(payload));
        if (checked.ok) counting.hear(checked.value);
        else logger.error({ key, problem: checked.problem }, "a used month was left out");
      },
      logger,
    });
  });

  return {
    isCurrent: () => followed?.isCurrent() === true,
    async stop() {
      stopped = true;
      await followed?.stop();
    },
  };
}
