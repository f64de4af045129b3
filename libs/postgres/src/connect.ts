import type { Logger } from "pino";
import postgres from "postgres";

/**
 * A pool of connections to PostgreSQL. Timestamps come and go as JavaScript dates, 64-bit integers as
 * numbers: none of ours passes 2^53.
 */
export type Sql = postgres.Sql<{ bigint: number }>;
export type Transaction = postgres.TransactionSql<{ bigint: number }>;

/** Values that PostgreSQL keeps as JSON. */
export type Json = postgres.JSONValue;

const connectTimeoutSeconds = 5;
/**
 * How soon a lost connection is tried again. The client library would wait up to 20 seconds, and
 * whoever asks meanwhile waits with it; a refused attempt costs next to nothing.
 */
const longestReconnectWaitSeconds = 0.25;
const firstReconnectWaitSeconds = 0.02;
/** No statement of ours takes longer than milliseconds; one that hangs must not hold its locks. */
const statementTimeoutMs = 15_000;
/** A transaction whose process was stopped in the middle must not block the others for long. */
const idleTransactionTimeoutMs = 10_000;

export function connectPostgres(options: {
  url: string;
  name: string;
  maxConnections: number;
  logger: Logger;
}): Sql {
  return postgres(options.url, {
    max: options.maxConnections,
    connect_timeout: connectTimeoutSeconds,
    backoff: (attempt) =>
      Math.min(firstReconnectWaitSeconds * 2 ** attempt, longestReconnectWaitSeconds),
    connection: {
      application_name: options.name,
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: idleTransactionTimeoutMs,
    },
    types: {
      bigint: {
        to: 20,
        from: [20],
        serialize: (value: number) => String(value),
        parse: (text: string) => Number(text),
      },
    },
    onnotice: (notice) => options.logger.debug({ notice: notice.message }, "PostgreSQL notice"),
  }) as unknown as Sql;
}
