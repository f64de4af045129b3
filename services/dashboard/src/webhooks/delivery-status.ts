import type { Delivery, DeliveryStatus } from "../api/schema.d.ts";
import type { Tone } from "../ui/badge.tsx";

export const statusTexts: Readonly<Record<DeliveryStatus, { label: string; tone: Tone }>> = {
  pending: { label: "Pending", tone: "accent" },
  delivering: { label: "Delivering", tone: "accent" },
  retrying: { label: "Retrying", tone: "warning" },
  delivered: { label: "Delivered", tone: "on" },
  failed: { label: "Failed", tone: "danger" },
  cancelled: { label: "Cancelled", tone: "neutral" },
};

/** Says what the last attempt caused, and how many there were: "HTTP 503, 2 attempts". */
export function attemptsText({
  attempts_made: attempts,
  last_status_code: status,
}: Pick<Delivery, "attempts_made" | "last_status_code">): string {
  if (attempts === 0) return "No attempt yet";
  const response = status === null ? "No response" : `HTTP ${status}`;
  return `${response}, ${attempts === 1 ? "1 attempt" : `${attempts} attempts`}`;
}

/** The filter of the deliveries, which is in the address. */
export type DeliverySearch = { status?: DeliveryStatus | undefined };

export function readDeliverySearch({ status }: Record<string, unknown>): DeliverySearch {
  const known = typeof status === "string" && Object.hasOwn(statusTexts, status);
  return { status: known ? (status as DeliveryStatus) : undefined };
}

/** Interval between readings while an attempt is due or in progress. */
const activeMs = 2_000;
/** Longest interval between readings while retries are due later. */
const retryingMs = 60_000;

/**
 * Returns the time until the deliveries are worth reading again, in milliseconds. Returns undefined if all have ended.
 */
export function nextReading(
  deliveries: readonly Pick<Delivery, "status" | "next_attempt_at">[],
  now: number,
): number | undefined {
  const waits = deliveries.flatMap(({ status, next_attempt_at: next }) => {
    if (status === "pending" || status === "delivering") return [activeMs];
    if (status !== "retrying" || next === null) return [];
    return [Math.min(retryingMs, Math.max(activeMs, Date.parse(next) - now))];
  });
  return waits.length === 0 ? undefined : Math.min(...waits);
}

/** Summarizes the newest deliveries of a webhook. */
export function summarizeRecent(deliveries: readonly Pick<Delivery, "status">[]): {
  text: string;
  tone: Tone;
} {
  if (deliveries.length === 0) return { text: "None yet", tone: "neutral" };
  const count = (...statuses: DeliveryStatus[]) =>
    deliveries.filter(({ status }) => statuses.includes(status)).length;
  const failed = count("failed");
  if (failed > 0) return { text: `${failed} of ${deliveries.length} failed`, tone: "danger" };
  const retrying = count("retrying");
  if (retrying > 0) return { text: `${retrying} retrying`, tone: "warning" };
  if (count("pending", "delivering") > 0) return { text: "In progress", tone: "accent" };
  return count("delivered") > 0
    ? { text: "Delivered", tone: "on" }
    : { text: "Cancelled", tone: "neutral" };
}
