import { type EvaluationsReported, evaluationsStream } from "@halyard/contracts";
import { watchConnection } from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import { jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";

/**
 * Publishes a report for usage-metering. Resolves with `stored` only after the broker has acknowledged the message.
 * After `unavailable` the outcome can be unknown: the message may still arrive. The client sends the report again, and
 * usage-metering recognizes it by its id.
 */
export type PublishReport = (report: EvaluationsReported) => Promise<"stored" | "unavailable">;

/** Time-out of a message. The broker responds within milliseconds. */
const acknowledgementTimeoutMs = 2_000;
/**
 * Maximum number of reports that wait for the broker, about 20 MB of the largest ones. Without a bound, a broker that
 * hangs would let them fill the memory of the edge.
 */
const maxWaiting = 64;

export function createPublishReport(options: {
  connection: Promise<NatsConnection>;
  logger: Logger;
}): PublishReport {
  let publish: ((report: EvaluationsReported) => Promise<unknown>) | undefined;
  let isConnected = () => false;
  let waiting = 0;
  let isFailing = false;

  void options.connection.then((connection) => {
    const client = jetstream(connection);
    isConnected = watchConnection(connection).isConnected;
    publish = (report) =>
      client.publish(evaluationsStream.reported.subject, JSON.stringify(report), {
        msgID: report.report_id,
        timeout: acknowledgementTimeoutMs,
        retries: 0,
      });
  });

  return async (report) => {
    if (publish === undefined || !isConnected() || waiting >= maxWaiting) return "unavailable";
    waiting += 1;
    try {
      await publish(report);
      isFailing = false;
      return "stored";
    } catch (error) {
      // Whatever the error, the client keeps its counts and sends them again.
      if (!isFailing) options.logger.warn({ err: error }, "NATS did not acknowledge a report");
      isFailing = true;
      return "unavailable";
    } finally {
      waiting -= 1;
    }
  };
}
