/** An error response, or another response without the requested data. */
export type Rejection = {
  kind: "rejected";
  status: number;
  /** The service rejects the key, so that no further request can succeed. */
  isOfKey: boolean;
  /** Minimum time until the next request, if the response names one. */
  retryAfterMs: number | undefined;
};

/** Maximum time that a `Retry-After` is honored for. A longer one is a mistake of a proxy. */
const maxRetryAfterMs = 24 * 3_600_000;

/** Reads what a response without the requested data says about the next request. */
export function rejectionOf(response: Response, wallMs: number): Rejection {
  const { status, headers } = response;
  return {
    kind: "rejected",
    status,
    isOfKey: status === 401 || (status === 403 && isJson(headers)),
    retryAfterMs: parseRetryAfter(headers.get("retry-after"), wallMs),
  };
}

/** The service's errors are JSON. Firewalls and proxies also respond with 403, usually with a page, and recover. */
function isJson(headers: Headers): boolean {
  return /^application\/json\b/i.test(headers.get("content-type") ?? "");
}

/** Parses `Retry-After`: seconds, or a date. Undefined if it is missing or is neither. */
function parseRetryAfter(text: string | null, wallMs: number): number | undefined {
  if (text === null || text.trim() === "") return undefined;
  const delayMs = /^\s*\d+\s*$/.test(text) ? Number(text) * 1_000 : Date.parse(text) - wallMs;
  return Number.isNaN(delayMs) ? undefined : Math.min(Math.max(delayMs, 0), maxRetryAfterMs);
}
