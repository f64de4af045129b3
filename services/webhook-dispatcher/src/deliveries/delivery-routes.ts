import type { AuthenticateServerKey } from "@halyard/api-keys";
import * as contract from "@halyard/contracts";
import type { Sql } from "@halyard/postgres";
import { type App, answer, isRefusal, refuse, registerRoute } from "@halyard/service";
import { noSuchWebhook, placeOf } from "../webhooks/webhook-place.ts";
import { findWebhook } from "../webhooks/webhook-store.ts";
import { deliveryResource, deliveryWithAttemptsResource } from "./delivery-resource.ts";
import { findDelivery, listDeliveries, redeliver } from "./delivery-store.ts";

const defaultPageSize = 100;

const noSuchDelivery = refuse("NOT_FOUND_001", "There is no such delivery of this webhook.");

/** The routes of what was, is and will be delivered. Every one needs a server key of the project. */
export function registerDeliveryRoutes(
  app: App,
  options: {
    sql: Sql;
    /** Told when an attempt is due at once. */
    onDue: () => void;
    authenticate: AuthenticateServerKey;
  },
): void {
  const { sql, onDue, authenticate } = options;

  registerRoute(app, contract.listDeliveries, {
    authenticate,
    handle: async ({ params, query }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      const { status, cursor, limit = defaultPageSize } = query;
      const beforeId = cursor === undefined ? undefined : idOfCursor(cursor);
      if (cursor !== undefined && beforeId === undefined)
        return refuse("VALIDATION_001", "/cursor must be the `next_cursor` of an earlier answer.");
      if ((await findWebhook(sql, place)) === undefined) return noSuchWebhook;
      // One more than asked for tells whether there is another page.
      const { webhookId } = place;
      const found = await listDeliveries(sql, { webhookId, status, beforeId, limit: limit + 1 });
      const page = found.slice(0, limit);
      const last = found.length > limit ? page.at(-1) : undefined;
      return answer.ok({
        deliveries: page.map(deliveryResource),
        next_cursor: last === undefined ? null : cursorOfId(last.id),
      });
    },
  });

  registerRoute(app, contract.getDelivery, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      if ((await findWebhook(sql, place)) === undefined) return noSuchWebhook;
      const { webhookId } = place;
      const deliveryId = params.deliveryId.toLowerCase();
      const delivery = await findDelivery(sql, { webhookId, deliveryId });
      if (delivery === undefined) return noSuchDelivery;
      return answer.ok(deliveryWithAttemptsResource(delivery));
    },
  });

  registerRoute(app, contract.redeliver, {
    authenticate,
    handle: async ({ params }, key) => {
      const place = placeOf(key, params);
      if (isRefusal(place)) return place;
      const deliveryId = params.deliveryId.toLowerCase();
      const delivery = await redeliver(sql, { ...place, deliveryId });
      if (delivery === undefined) return noSuchDelivery;
      onDue();
      return answer.accepted(deliveryResource(delivery));
    },
  });
}

/** A cursor is the id of the last delivery of a page; base64url keeps callers from building their own. */
function cursorOfId(id: string): string {
  return Buffer.from(id).toString("base64url");
}

function idOfCursor(cursor: string): string | undefined {
  const id = Buffer.from(cursor, "base64url").toString();
  return cursorOfId(id) === cursor && isId(id) ? id : undefined;
}

function isId(text: string): boolean {
  return /^[0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12}$/.test(text);
}
