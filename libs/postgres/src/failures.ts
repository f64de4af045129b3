import pg from "pg";

/**
 * Classes of PostgreSQL's error codes (its manual, appendix A) that mean "try again later": connection
 * trouble, resources, shutdown, and transactions that were broken off for another's sake.
 */
const outageClasses = ["08", "40", "53", "57"];
/** A server that takes no writes for now, as during a failover; and one that ended our idle session. */
const outageStates = new Set(["25006", "25P03"]);
const connectionLost = "CONNECTION_LOST";
/** Codes of a connection that was lost or could not be opened. */
const connectionCodes = new Set([
  connectionLost,
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

/** An error of the client library without a code. Each of these is about the connection. */
export class ConnectionLostError extends Error {
  override name = "ConnectionLostError";
  readonly hasSafeMessage = true;
  readonly code = connectionLost;
}

/** Returns the error with a name and a code that identify it. */
export function failureOf(error: unknown): unknown {
  if (!(error instanceof Error)) return error;
  if (error instanceof pg.DatabaseError) return Object.assign(error, { name: "PostgresError" });
  return "code" in error ? error : new ConnectionLostError(error.message, { cause: error });
}
