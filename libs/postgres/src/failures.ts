/**
 * Classes of PostgreSQL's error codes (its manual, appendix A) that mean "try again later": connection
 * trouble, resources, shutdown.
 */
const outageClasses = ["08", "53", "57"];
/** Codes of the client library for a connection that is gone or could not be made. */
const connectionCodes = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNREFUSED",
  "ECONNRESET",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** Whether PostgreSQL is away or refuses for now, so that the same may succeed later. */
export function isOutage(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  if (!("code" in error) || typeof error.code !== "string") return false;
  return connectionCodes.has(error.code) || outageClasses.includes(error.code.slice(0, 2));
}
