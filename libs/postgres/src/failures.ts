import postgres from "postgres";

/**
 * What PostgreSQL may answer that is not our programming error. The codes are those of its manual,
 * appendix A.
 */
const uniqueViolation = "23505";

/** Classes of codes that mean "try again later": connection trouble, resources, shutdown. */
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

/** The name of the unique constraint that a statement broke, or undefined for any other failure. */
export function brokenUniqueConstraint(error: unknown): string | undefined {
  if (!(error instanceof postgres.PostgresError) || error.code !== uniqueViolation)
    return undefined;
  return error.constraint_name;
}

/** Whether PostgreSQL is away or refuses for now, so that the same may succeed later. */
export function isOutage(error: unknown): boolean {
  if (typeof error !== "object" || error === null) return false;
  if (!("code" in error) || typeof error.code !== "string") return false;
  return connectionCodes.has(error.code) || outageClasses.includes(error.code.slice(0, 2));
}
