import type { Logger } from "pino";
import postgres from "postgres";
import { arrayParameterTypes } from "./array-types.ts";
import { endTransactionsWithTheirConnections } from "./lost-transactions.ts";
import { SteadySocket } from "./steady-socket.ts";
import { splitTls } from "./tls.ts";

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

export type ConnectOptions = {
  url: string;
  name: string;
  maxConnections: number;
  logger: Logger;
};

export function connectPostgres(options: ConnectOptions): Sql {
  const { url, tls } = splitTls(options.url);
  const settings = {
    // The types leave this one out: how a connection gets its socket.
    socket: ({ host: [host = ""], port: [port = 0] }: { host: string[]; port: number[] }) =>
      new SteadySocket({ host, port, tls }),
    ssl: false,
    max: options.maxConnections,
    connect_timeout: connectTimeoutSeconds,
    backoff: (attempt: number) =>
      Math.min(firstReconnectWaitSeconds * 2 ** attempt, longestReconnectWaitSeconds),
    connection: {
      application_name: options.name,
      // Whatever the server's own is: instants inside of JSON come as text in the session's zone.
      TimeZone: "UTC",
      statement_timeout: statementTimeoutMs,
      idle_in_transaction_session_timeout: idleTransactionTimeoutMs,
    },
    fetch_types: false,
    types: {
      ...arrayParameterTypes,
      bigint: {
        to: 20,
        from: [20],
        serialize: (value: number) => String(value),
        parse: (text: string) => Number(text),
      },
    },
    onnotice: (notice: postgres.Notice) =>
      options.logger.debug({ code: notice.code }, "PostgreSQL notice"),
  };
  const sql = postgres(url, settings);
  endTransactionsWithTheirConnections(sql as unknown as postgres.Sql<Record<string, never>>);
  forbidCursors(sql as unknown as Sql);
  return sql as unknown as Sql;
}

/**
 * A statement with a cursor must not fail after its first rows: the library would answer the `CommandComplete`
 * that `WholeResults` inserts with a second `Sync`, and the next statement on the connection would have no rows.
 */
function forbidCursors(sql: Sql): void {
  const neverExecuted = sql`select 1`;
  Object.getPrototypeOf(neverExecuted).cursor = () => {
    throw new Error("Cursors are not supported; read page by page.");
  };
}
