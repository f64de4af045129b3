import { createHash } from "node:crypto";
import { type EvaluationsReported, evaluationsStream } from "@halyard/contracts";
import { publishTraced, watchConnection } from "@halyard/jetstream";
import type { Logger } from "@halyard/service";
import { jetstream } from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";

/**
 * Publishes a report for usage-metering. Resolves with `stored` only after the broker has acknowledged the message.
 * After `unavailable` the outcome can be unknown: the message may still arrive. The client sends the report again, and
 * usage-metering recognizes it by its id.
 */
export type PublishReport = (
  organizationId: string,
  report: EvaluationsReported,
) => Promise<"stored" | "unavailable">;

/**
 * Maximum number of reports that wait for the broker, about 20 MB of the largest ones. Without a bound, a broker that
 * hangs would let them fill the memory of the edge.
 */
const maxWaiting = 64;
/** Maximum number of them from one organization, so that it does not take the room of all others. */
const maxWaitingPerOrganization = maxWaiting / 4;

export function createPublishReport(options: {
  connection: Promise<NatsConnection>;
  logger: Logger;
}): PublishReport {
  let publish: ((report: EvaluationsReported) => Promise<unknown>) | undefined;
  let isConnected = () => false;
  const waiting = createWaiting();
  let isFailing = false;

  void options.connection.then((connection) => {
    const client = jetstream(connection);
    isConnected = watchConnection(connection).isConnected;
    publish = (report) =>
      publishTraced(client, {
        subject: evaluationsStream.reported.subject,
        payload: JSON.stringify(report),
        messageId: report.report_id,
      });
  });

  return async (organizationId, report) => {
    if (publish === undefined || !isConnected() || waiting.isFull(organizationId))
      return "unavailable";
    waiting.add(organizationId, 1);
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
      waiting.add(organizationId, -1);
    }
  };
}

/** Counts the reports that wait, in total and by organization. */
function createWaiting() {
  const counts = new Map<string, number>();
  let total = 0;
  return {
    isFull: (organizationId: string): boolean =>
      total >= maxWaiting || (counts.get(organizationId) ?? 0) >= maxWaitingPerOrganization,
    add(organizationId: string, change: 1 | -1): void {
      const count = (counts.get(organizationId) ?? 0) + change;
      if (count === 0) counts.delete(organizationId);
      else counts.set(organizationId, count);
      total += change;
    },
  };
}

/**
 * Returns the id of the report that an API key sends with an `Idempotency-Key`: always the same, a UUID of version 8
 * (RFC 9562). It is a hash, so that nothing that a client writes in the header is stored.
 */
export function reportIdOf(apiKeyId: string, idempotencyKey: string): string {
  const hex = createHash("sha256").update(`${apiKeyId} ${idempotencyKey}`).digest("hex");
  const parts = [hex.slice(0, 8), hex.slice(8, 12), `8${hex.slice(13, 16)}`];
  return [...parts, `8${hex.slice(17, 20)}`, hex.slice(20, 32)].join("-");
}
