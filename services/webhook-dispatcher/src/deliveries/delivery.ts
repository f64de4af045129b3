import type { DeliveryStatus, EventName } from "@halyard/contracts";

/**
 * One event for one webhook. Open deliveries are `pending` until their first attempt, or from when a
 * person asked for another one, `delivering` while an attempt is made, and `retrying` between attempts.
 */
export type Delivery = {
  /** Of version 7: the order of the ids is that of creation. */
  id: string;
  webhookId: string;
  organizationId: string;
  projectId: string;
  eventId: string;
  event: EventName;
  status: DeliveryStatus;
  /** All attempts that were made, those of redeliveries too. */
  attemptsMade: number;
  createdAt: Date;
  /** While the delivery waits for one. */
  nextAttemptAt: Date | null;
  /** When an attempt succeeded last, also when one that was asked for later has failed. */
  deliveredAt: Date | null;
};

/** One request to the target. */
export type Attempt = {
  /** Of version 7. */
  id: string;
  attemptedAt: Date;
  /** Null when there was no answer. */
  statusCode: number | null;
  durationMs: number;
  /** A few words on why there was no answer; null when there was one. */
  error: string | null;
  /** The beginning of the answer. */
  responseBody: string | null;
};

/**
 * Of one delivery; the newest. An event brings about six. The others a person has asked for, and whoever
 * asks in a loop fills no table, and gets no answer of many megabytes.
 */
export const maxStoredAttempts = 100;

/** The text that is sent and signed in every attempt, and the attempts in the order of time. */
export type DeliveryWithAttempts = Delivery & { payload: string; attempts: Attempt[] };
