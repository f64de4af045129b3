import pg from "pg";

/**
 * Classes of PostgreSQL's error codes (its manual, appendix A) after which a retry may succeed: connection errors,
 * insufficient resources, operator intervention, and transaction rollbacks such as deadlocks.
 */
const outageClasses = ["08", "40", "53", "57"];
/** Codes of a read-only server, as during a failover, and of a session that the server ended after a time-out. */
const outageStates = new Set(["25006", "25P03", "25P04"]);
const queryCanceled = "57014";
const connectionLost = "CONNECTION_LOST";
const poolClosed = "POOL_CLOSED";
/** Codes of a connection that was lost or could not be opened. */
const connectionCodes = new Set([
  connectionLost,
  poolClosed,
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

/** Returns whether PostgreSQL is unavailable or rejects a statement temporarily, so that a retry may succeed. */
export function isOutage(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined) return false;
  return (
    connectionCodes.has(code) ||
    outageStates.has(code) ||
    isOfClass(code, outageClasses) ||
    isStalePlan(error)
  );
}

/**
 * Returns whether the connection cannot be used after this error. After a deadlock or a statement time-out it can, once
 * the transaction was rolled back. A connection to a read-only server is replaced, because a failover may have made
 * another server the primary.
 */
export function isConnectionOver(error: unknown): boolean {
  const code = codeOf(error);
  if (code === undefined || code === queryCanceled) return false;
  return isOutage(error) && !isOfClass(code, ["40", "53"]);
}

/**
 * Returns whether the result columns of a prepared statement have changed, as after a migration. The statement had no
 * effect. The client would not prepare it again on this connection, so the connection is discarded. Only the caller can
 * repeat the statement, because its transaction is aborted. The error counts as an outage: clients receive 503 and
 * retry, and queues keep their message.
 */
function isStalePlan(error: unknown): boolean {
  return (
    error instanceof pg.DatabaseError &&
    error.code === "0A000" &&
    error.routine === "RevalidateCachedQuery"
  );
}

function codeOf(error: unknown): string | undefined {
  if (typeof error !== "object" || error === null) return undefined;
  return "code" in error && typeof error.code === "string" ? error.code : undefined;
}

function isOfClass(code: string, classes: readonly string[]): boolean {
  return /^[0-9A-Z]{5}$/.test(code) && classes.includes(code.slice(0, 2));
}

/** The pool was closed before the statement received a connection. */
export class PoolClosedError extends Error {
  override name = "PoolClosedError";
  readonly hasSafeMessage = true;
  readonly code = poolClosed;

  constructor() {
    super("The pool of connections to PostgreSQL is closed.");
  }
}

/** An error of the client library without a code. All such errors concern the connection. */
class ConnectionLostError extends Error {
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
