import * as contract from "@halyard/contracts";
import {
  type App,
  answer,
  createProblem,
  idOfCursor,
  isProblem,
  noSuchCursor,
  pageOf,
  registerRoute,
} from "@halyard/http";
import type { AuthenticateMember } from "@halyard/people";
import type { Sql } from "@halyard/postgres";
import { noSuchWebhook, scopeOf } from "../webhooks/webhook-routes.ts";
import { findWebhook } from "../webhooks/webhook-store.ts";
import type { Attempt, Delivery, DeliveryWithAttempts } from "./delivery.ts";
import { findDelivery, listDeliveries, redeliver } from "./delivery-store.ts";

const defaultPageSize = 100;

const noSuchDelivery = createProblem("NOT_FOUND_001", "There is no such delivery of this webhook.");

/** Registers the routes of deliveries. Each requires a server key of the project. */
export function registerDeliveryRoutes(
  app: App,
  options: {
    sql: Sql;
    /** Called when an attempt is due immediately. */
    onDue: () => void;
    authenticate: AuthenticateMember;
  },
): void {
  const { sql, onDue, authenticate } = options;

  registerRoute(app, contract.listDeliveries, {
    authenticate: authenticate(contract.listDeliveries),
    handle: async ({ params, query }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      const { status, cursor, limit = defaultPageSize } = query;
      const beforeId = cursor === undefined ? undefined : idOfCursor(cursor);
      if (cursor !== undefined && beforeId === undefined) return noSuchCursor;
      if ((await findWebhook(sql, scope)) === undefined) return noSuchWebhook;
      const { webhookId } = scope;
      const found = await listDeliveries(sql, { webhookId, status, beforeId, limit: limit + 1 });
      const page = pageOf(found, limit, ({ id }) => id);
      return answer.ok({
        deliveries: page.items.map(deliveryResource),
        next_cursor: page.nextCursor,
      });
    },
  });

  registerRoute(app, contract.getDelivery, {
    authenticate: authenticate(contract.getDelivery),
    handle: async ({ params }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      if ((await findWebhook(sql, scope)) === undefined) return noSuchWebhook;
      const { webhookId } = scope;
      const deliveryId = params.deliveryId.toLowerCase();
      const delivery = await findDelivery(sql, { webhookId, deliveryId });
      if (delivery === undefined) return noSuchDelivery;
      return answer.ok(deliveryWithAttemptsResource(delivery));
    },
  });

  registerRoute(app, contract.redeliver, {
    authenticate: authenticate(contract.redeliver),
    handle: async ({ params }, key) => {
      const scope = scopeOf(key, params);
      if (isProblem(scope)) return scope;
      const deliveryId = params.deliveryId.toLowerCase();
      const delivery = await redeliver(sql, { ...scope, deliveryId });
      if (delivery === undefined) return noSuchDelivery;
      onDue();
      return answer.accepted(deliveryResource(delivery));
    },
  });
}

/** Returns a delivery in the format of the API. */
function deliveryResource(delivery: Delivery): contract.Delivery {
  return {
    id: delivery.id,
    webhook_id: delivery.webhookId,
    event_id: delivery.eventId,
    event: delivery.event,
    flag_key: delivery.flagKey,
    environment_id: delivery.environmentId,
    ...(delivery.audienceKey === null ? {} : { audience_key: delivery.audienceKey }),
    ...(delivery.changeRequestId === null ? {} : { change_request_id: delivery.changeRequestId }),
    status: delivery.status,
    attempts_made: delivery.attemptsMade,
    last_status_code: delivery.lastStatusCode,
    created_at: delivery.createdAt.toISOString(),
    next_attempt_at: delivery.nextAttemptAt?.toISOString() ?? null,
    delivered_at: delivery.deliveredAt?.toISOString() ?? null,
  };
}

function deliveryWithAttemptsResource(
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
