import type * as contract from "@halyard/contracts";
import type { Attempt, Delivery, DeliveryWithAttempts } from "./delivery.ts";

/** A delivery as the API shows it. */
export function deliveryResource(delivery: Delivery): contract.Delivery {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    event: delivery.event,
    status: delivery.status,
    attempts_made: delivery.attemptsMade,
    created_at: delivery.createdAt.toISOString(),
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
  };
}

export function deliveryWithAttemptsResource(
  delivery: DeliveryWithAttempts,
): contract.DeliveryWithAttempts {
  return {
    ...deliveryResource(delivery),
    payload: JSON.parse(delivery.payload),
    attempts: delivery.attempts.map(attemptResource),
  };
}

function attemptResource(attempt: Attempt): contract.DeliveryAttempt {
  return {
    attempted_at: attempt.attemptedAt.toISOString(),
    status_code: attempt.statusCode,
    duration_ms: attempt.durationMs,
    error: attempt.error,
    response_body: attempt.responseBody,
  };
}
