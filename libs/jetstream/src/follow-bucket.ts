import { everythingFilter } from "@halyard/contracts";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { type FollowedStream, followStream } from "./follow-stream.ts";
import { streamPosition } from "./streams.ts";

type BucketEntry = {
  /** Without the prefix of the bucket's subjects. */
  key: string;
  payload: Uint8Array;
};

/** Follows a bucket of independent entries: all newest values, then each change. */
export function followBucket(options: {
  connection: NatsConnection;
  bucket: { streamName: string; subjectPrefix: string };
  /** Filter of keys, such as `edge.*`. */
  filter: string;
  onEntry(entry: BucketEntry): void;
  /** Called when a full read begins. Entries that it does not deliver were deleted. */
  onBegin?(): void;
  /** Called when all newest values have been delivered. */
  onCaughtUp?(): void;
  logger: Logger;
}): FollowedStream {
  const { connection, logger } = options;
  const { streamName, subjectPrefix } = options.bucket;
  return followStream({
    connection,
    logger,
    source: {
      stream: streamName,
      filter: options.filter === everythingFilter ? undefined : subjectPrefix + options.filter,
      async identify(manager) {
        const position = await streamPosition(manager, streamName);
        return position && { identity: position.createdAt };
      },
      begin() {
        options.onBegin?.();
        return {
          take: ({ subject, payload }) =>
            options.onEntry({
              key: subject.slice(subjectPrefix.length),
              payload,
            }),
          caughtUp: () => options.onCaughtUp?.(),
        };
      },
    },
  });
}
