import { isOutage, type Sql } from "@halyard/postgres";
import { retry } from "@halyard/timing";
import type { Logger } from "pino";
import type { Attempt } from "../deliveries/delivery.ts";
import { BrokenSecretError, type SecretBox, UnknownSecretKeyError } from "../secrets/secret-box.ts";
import { outgoing } from "../sending/outgoing.ts";
import { logAddressNotAllowed, type Send, type SendResult } from "../sending/send.ts";
import { signingSecrets } from "../webhooks/webhook-secrets.ts";
import { recordAttempt } from "./attempt-store.ts";
import { type ClaimedDelivery, giveUpClaim, latestStartMs } from "./claim-store.ts";
import { decideAfterAttempt, type RetryPlan, tookLong } from "./decide-after-attempt.ts";
import type { DispatchMetrics } from "./dispatch-metrics.ts";

/**
 * Makes an attempt at a delivery that was claimed, and records it. While PostgreSQL is away it waits
 * with what it has to record. When it is called off, the delivery is given back, to be attempted by
 * somebody else: whether the target got this one is not known.
 *
 * It never throws, since one delivery must not end what all the others need. A fault of sending is an
 * attempt that failed, so that the retries end it; after a fault of recording the claim runs out.
 */
export type MakeAttempt = (delivery: ClaimedDelivery, calledOff: AbortSignal) => Promise<void>;

export type MakeAttemptOptions = {
  sql: Sql;
  send: Send;
  secrets: SecretBox;
  plan: RetryPlan;
  /** From 0 to 1. */
  random: () => number;
  newId: () => string;
  now: () => Date;
  /** Milliseconds that never go back. */
  monotonicMs: () => number;
  metrics: DispatchMetrics;
  logger: Logger;
};

export function createMakeAttempt(options: MakeAttemptOptions): MakeAttempt {
  const makeAttempt = createAttemptAndRecord(options);
  return async (delivery, calledOff) => {
    try {
      await makeAttempt(delivery, calledOff);
    } catch (error) {
      const about = { delivery_id: delivery.id, webhook_id: delivery.webhook.id };
      options.logger.error({ ...about, err: error }, "an attempt could not be recorded");
    }
  };
}

function createAttemptAndRecord(options: MakeAttemptOptions): MakeAttempt {
  const { sql, metrics, logger } = options;
  return async (delivery, calledOff) => {
    const about = { delivery_id: delivery.id, webhook_id: delivery.webhook.id };
    if (options.monotonicMs() - delivery.claimedAtMs > latestStartMs) {
      logger.warn(about, "a delivery was not sent: this process stood still after claiming it");
      return;
    }
    const log = logger.child(about);
    const at = options.now();
    const result = await attemptOnce(options, { delivery, at, calledOff, log });
    if (result === undefined) return;
    logAddressNotAllowed(result, delivery.webhook.id, logger);
    if (calledOff.aborted && result.kind === "failed") {
      await persist(() => giveUpClaim(sql, delivery), calledOff, log);
      return;
    }
    metrics.attempted(result, delivery.waitedMs);
    const made = {
      delivery,
      attempt: attemptOf(result, { id: options.newId(), at }),
      next: decideAfterAttempt(delivery, result, { plan: options.plan, random: options.random() }),
      slow: tookLong(result),
    };
    const recorded = await persist(() => recordAttempt(sql, made), calledOff, log);
    if (recorded === undefined) return;
    metrics.moved(recorded.status);
    log.debug({ status: recorded.status }, "an attempt was made");
  };
}

/** Undefined when none was made, because this process cannot sign it. */
async function attemptOnce(
  { send, secrets, now }: MakeAttemptOptions,
  made: { delivery: ClaimedDelivery; at: Date; calledOff: AbortSignal; log: Logger },
): Promise<SendResult | undefined> {
  const { delivery, at } = made;
  try {
    const request = outgoing({
      deliveryId: delivery.id,
      event: delivery.event,
      payload: delivery.payload,
      at,
      secrets: signingSecrets(secrets, delivery.webhook, at, made.log),
    });
    return await send({ url: delivery.webhook.url, ...request, signal: made.calledOff });
  } catch (error) {
    // Another replica may know the key, while keys are changed; or whoever runs this brings it back. No
    // attempt was made. The claim is left to run out, so that it is tried again in a minute, not at once.
    if (error instanceof UnknownSecretKeyError) {
      made.log.error({ err: error }, "a delivery waits for the key of its webhook's secret");
      return undefined;
    }
    if (!(error instanceof BrokenSecretError)) {
      made.log.error({ err: error }, "a request could not be made");
      const durationMs = Math.max(0, now().getTime() - at.getTime());
      return { kind: "failed", error: "request failed", timedOut: false, durationMs };
    }
    // Unsigned it would not be accepted.
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

/** Repeats a write while PostgreSQL is unavailable, until the process is about to end. Then the claim runs out. */
function persist<T>(write: () => Promise<T>, signal: AbortSignal, log: Logger) {
  return retry(write, {
    backoff,
    signal,
    onFailure(error) {
      if (!isOutage(error)) throw error;
      log.warn({ err: error }, "an attempt is not recorded yet");
    },
  });
}
