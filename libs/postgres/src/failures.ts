/**
 * Classes of PostgreSQL's error codes (its manual, appendix A) that mean "try again later": connection
 * trouble, resources, shutdown, and transactions that were broken off for another's sake.
 */
const outageClasses = ["08", "40", "53", "57"];
/** A server that takes no writes for now, as during a failover; and one that ended our idle session. */
const outageStates = new Set(["25006", "25P03"]);
/** Codes of the client library and of the network for a connection that is gone or could not be made. */
const connectionCodes = new Set([
  "CONNECTION_CLOSED",
  "CONNECTION_ENDED",
  "CONNECTION_DESTROYED",
  "CONNECT_TIMEOUT",
  "ECONNABORTED",
  "ECONNREFUSED",
  "ECONNRESET",
  "EHOSTDOWN",
  "EHOSTUNREACH",
  "ENETDOWN",
  "ENETUNREACH",
  "EPIPE",
  "ETIMEDOUT",
  "ENOTFOUND",
  "EAI_AGAIN",
]);

/** Whether PostgreSQL is away or refuses for now, so that the same may succeed later. */
export function isOutage(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  if (!("code" in error) || typeof error.code !== "string") return false;
  const { code } = error;
  if (connectionCodes.has(code) || outageStates.has(code)) return true;
  return isSqlState(code) && outageClasses.includes(code.slice(0, 2));
}

function isSqlState(code: string): boolean {
  return /^[0-9A-Z]{5}$/.test(code);
}
