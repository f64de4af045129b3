import type { DeliveryStatus, EventName } from "@halyard/contracts";

/**
 * One event for one webhook. An open delivery is `pending` until its first attempt or a requested one, `delivering`
 * during an attempt, and `retrying` between attempts.
 */
export type Delivery = {
  /** UUID version 7, so the order of ids is the order of creation. */
  id: string;
  webhookId: string;
  organizationId: string;
  projectId: string;
  eventId: string;
  event: EventName;
  /** The subject of the event. Absent members are null. */
  flagKey: string | null;
  environmentId: string | null;
  audienceKey: string | null;
  changeRequestId: string | null;
  status: DeliveryStatus;
  /** Number of attempts, including redeliveries. */
  attemptsMade: number;
  /** Status of the response to the last attempt. Null without an attempt or a response. */
  lastStatusCode: number | null;
  createdAt: Date;
  /** Set while the delivery waits for an attempt. */
  nextAttemptAt: Date | null;
  /** Time of the last successful attempt. A failed redelivery does not clear it. */
  deliveredAt: Date | null;
};

/** One request to the target. */
export type Attempt = {
  /** UUID version 7. */
  id: string;
  attemptedAt: Date;
  /** Null if there was no response. */
  statusCode: number | null;
  durationMs: number;
  /** A short description of the failure; null if there was a response. */
  error: string | null;
  responseBody: string | null;
};

/**
 * Maximum number of stored attempts per delivery. The oldest are deleted. A delivery has about six attempts without
 * redeliveries. The bound prevents a client that requests redeliveries in a loop from filling the table.
 */
export const maxStoredAttempts = 100;

/** A delivery with the text that every attempt signs and sends, and its attempts in the order of time. */
export type DeliveryWithAttempts = Delivery & { payload: string; attempts: Attempt[] };
