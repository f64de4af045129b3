import { isOutage, type Sql } from "@halyard/postgres";
import type { Deletions } from "@halyard/snapshot";
import { retry } from "@halyard/timing";
import type { TraceContext } from "@halyard/tracing";
import type { Logger } from "pino";
import type { Attempt } from "../deliveries/delivery.ts";
import { BrokenSecretError, type SecretBox, UnknownSecretKeyError } from "../secrets/secret-box.ts";
import { outgoing } from "../sending/outgoing.ts";
import { logAddressNotAllowed, type Send, type SendResult } from "../sending/send.ts";
import { signingSecrets } from "../webhooks/webhook-secrets.ts";
import { recordAttempt } from "./attempt-store.ts";
import { type ClaimedDelivery, endClaim, latestStartMs, postpone } from "./claim-store.ts";
import { decideAfterAttempt, type RetryPlan, tookLong } from "./decide-after-attempt.ts";
import type { DispatchMetrics } from "./dispatch-metrics.ts";
import { endAttempt, startAttempt } from "./trace-attempt.ts";

/**
 * Makes an attempt for a claimed delivery and records it. While PostgreSQL is unavailable, recording is retried. If the
 * attempt is cancelled, the delivery is due immediately and another process repeats the attempt, because the target may
 * not have received it.
 *
 * The function never throws, because an error of one delivery must not stop the dispatcher. An unexpected error while
 * sending counts as a failed attempt, so that the number of retries bounds it. After an unexpected error while
 * recording, the claim expires.
 */
export type MakeAttempt = (delivery: ClaimedDelivery, cancelled: AbortSignal) => Promise<void>;

export type MakeAttemptOptions = {
  sql: Sql;
  send: Send;
  secrets: SecretBox;
  deletions: Pick<Deletions, "has">;
  plan: RetryPlan;
  /** From 0 to 1. */
  random: () => number;
  newId: () => string;
  now: () => Date;
  /** Returns milliseconds of a monotonic clock. */
  monotonicMs: () => number;
  metrics: DispatchMetrics;
  logger: Logger;
};

/** Pause of a delivery whose project is deleted. It bounds how often a backlog is claimed before the sweep. */
const deletedPauseMs = 10 * 60 * 1_000;

export function createMakeAttempt(options: MakeAttemptOptions): MakeAttempt {
  const makeAttempt = createAttemptAndRecord(options);
  return async (delivery, cancelled) => {
    try {
      await makeAttempt(delivery, cancelled);
    } catch (error) {
      const about = { delivery_id: delivery.id, webhook_id: delivery.webhook.id };
      options.logger.error({ ...about, err: error }, "an attempt could not be recorded");
    }
  };
}

function createAttemptAndRecord(options: MakeAttemptOptions): MakeAttempt {
  const { sql, metrics, logger } = options;
  return async (delivery, cancelled) => {
    const about = { delivery_id: delivery.id, webhook_id: delivery.webhook.id };
    if (options.monotonicMs() - delivery.claimedAtMs > latestStartMs) {
      logger.warn(about, "a delivery was not sent: the process was suspended after claiming it");
      return;
    }
    const log = logger.child(about);
    const { organizationId, projectId } = delivery.webhook;
    if (options.deletions.has({ kind: "project", organizationId, projectId })) {
      // Not cancelled, because the snapshot may be older than a restored database. The sweep deletes the webhook.
      await persist(() => postpone(sql, delivery, deletedPauseMs), cancelled, log);
      return;
    }
    const at = options.now();
    const span = startAttempt(delivery);
    const trace = delivery.webhook.traceContext ? span?.context : undefined;
    const result = await attemptOnce(options, { delivery, at, trace, cancelled, log });
    endAttempt(span, result);
    if (result === undefined) return;
    logAddressNotAllowed(result, delivery.webhook.id, logger);
    if (cancelled.aborted && result.kind === "failed") {
      await persist(() => endClaim(sql, delivery), cancelled, log);
      return;
    }
    metrics.attempted(result, delivery.waitedMs);
    const made = {
      delivery,
      attempt: attemptOf(result, { id: options.newId(), at }),
      next: decideAfterAttempt(delivery, result, { plan: options.plan, random: options.random() }),
      slow: tookLong(result),
    };
    const recorded = await persist(() => recordAttempt(sql, made), cancelled, log);
    if (recorded === undefined) return;
    metrics.moved(recorded.status);
    log.debug({ status: recorded.status }, "an attempt was recorded");
  };
}

/** Makes the attempt. Returns undefined without an attempt if the key of the webhook's secret is not configured. */
async function attemptOnce(
  { send, secrets, now }: MakeAttemptOptions,
  made: {
    delivery: ClaimedDelivery;
    at: Date;
    trace: TraceContext | undefined;
    cancelled: AbortSignal;
    log: Logger;
  },
): Promise<SendResult | undefined> {
  const { delivery, at } = made;
  try {
    const request = outgoing({
      deliveryId: delivery.id,
      event: delivery.event,
      payload: delivery.payload,
      at,
      secrets: signingSecrets(secrets, delivery.webhook, at, made.log),
      trace: made.trace,
    });
    return await send({ url: delivery.webhook.url, ...request, signal: made.cancelled });
  } catch (error) {
    // During a rotation, another replica may have the key, or the operator may restore it. The claim is not ended:
    // it expires, so the delivery is retried after about a minute instead of immediately.
    if (error instanceof UnknownSecretKeyError) {
      made.log.error({ err: error }, "a delivery waits for the key of its webhook's secret");
      return undefined;
    }
    if (!(error instanceof BrokenSecretError)) {
      made.log.error({ err: error }, "an unexpected error ended an attempt");
      const durationMs = Math.max(0, now().getTime() - at.getTime());
      return { kind: "failed", error: "request failed", timedOut: false, durationMs };
    }
    // The receiver would reject an unsigned request.
    made.log.error({ err: error }, "a delivery cannot be signed");
    return { kind: "failed", error: "could not be signed", timedOut: false, durationMs: 0 };
  }
}

function attemptOf(result: SendResult, { id, at }: { id: string; at: Date }): Attempt {
  const answered = result.kind === "answered";
  return {
    id,
    attemptedAt: at,
    statusCode: answered ? result.status : null,
    durationMs: Math.round(result.durationMs),
    error: answered ? null : result.error,
    responseBody: answered ? result.body : null,
  };
}

const backoff = { firstMs: 250, maxMs: 250 };

/** Repeats a write while PostgreSQL is unavailable, until the process stops. Then the claim expires. */
function persist<T>(write: () => Promise<T>, signal: AbortSignal, log: Logger) {
  return retry(write, {
    backoff,
    signal,
    onFailure(error) {
      if (!isOutage(error)) throw error;
      log.warn({ err: error }, "an attempt is not recorded yet; retrying");
    },
  });
}
