import type { IncomingHttpHeaders } from "node:http";

/**
 * Costs of requests, as multiples of a small one. Requests of an organization count towards its rate limit by their
 * costs, because management takes far longer for the largest rules than for a small request.
 */

/** Number of bytes of JSON that management parses, checks and stores in about the time of a small request. */
const bytesPerRequest = 16 * 1024;

/** Time of the event loop that a small request takes. */
const msPerRequest = 2;

export const costOfBytes = (bytes: number): number => Math.floor(bytes / bytesPerRequest);

/** Returns the cost of a part of a body: a fraction, so that many small parts cost as much as a large one. */
export const costOfPart = (bytes: number): number => bytes / bytesPerRequest;

/** Returns whether the messages about a change cost as much as several small requests. */
export const isLargeEffect = (bytes: number): boolean => bytes >= 8 * bytesPerRequest;

export const costOfTime = (ms: number): number => Math.floor(ms / msPerRequest);

/** Maximum size of a request body. The largest valid set of targeting rules is about half as large. */
export const bodyLimitBytes = 1024 * 1024;

/** Returns the length of a body that has not been read. Without a length, it may have the maximum. */
function bodyBytes(headers: IncomingHttpHeaders): number {
  if (headers["transfer-encoding"] !== undefined) return bodyLimitBytes;
  return Math.min(Number(headers["content-length"] ?? 0), bodyLimitBytes);
}

/** Returns the cost of a request before its body is read. */
export const costOfRequest = (headers: IncomingHttpHeaders): number =>
  1 + costOfBytes(bodyBytes(headers));

/** Returns whether a request costs more than a small one. */
export const isLarge = (headers: IncomingHttpHeaders): boolean => costOfRequest(headers) > 1;
