import { Socket } from "node:net";
import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import type { Logger } from "pino";
import { isConnectionOver } from "./failures.ts";
import { type Listening, listen } from "./listen.ts";
import { Pool } from "./pool.ts";
import { createStatements, type Statements } from "./statements.ts";
import { splitAddress } from "./tls.ts";
import { run, type Transaction, transaction } from "./transaction.ts";

/**
 * A pool of connections to PostgreSQL. Timestamps become JavaScript dates. 64-bit integers become numbers, because no
 * stored one exceeds 2^53.
 */
export type Sql = Statements & {
  begin<Result>(work: (tx: Transaction) => Promise<Result>): Promise<Result>;
  /** Receives notifications until the signal is aborted. */
  listen(listening: Listening): Promise<void>;
  readonly maxConnections: number;
  /** Rejects statements that wait for a connection, and waits for running ones, for a bounded time. */
  end(): Promise<void>;
};

const connectTimeoutMs = 5_000;
/** Time-out of statements, which usually take milliseconds. A statement that hangs must not keep its locks. */
const statementTimeoutMs = 15_000;
/** Time-out of idle transactions, so that a process that is suspended in a transaction does not block others. */
const idleTransactionTimeoutMs = 10_000;
/**
 * Time without a response after which a connection counts as lost. It is longer than the server's time-out of
 * statements. The operating system would wait a quarter of an hour for a machine that lost power.
 */
const maxSilenceMs = 20_000;
const keepAliveAfterMs = 60_000;
/** Time for running statements to complete when a pool is closed. */
const closeTimeoutMs = 5_000;

export type ConnectOptions = {
  url: string;
  name: string;
  maxConnections: number;
  logger: Logger;
  /** Overrides the time after which a silent connection counts as lost, for tests. */
  maxSilenceMs?: number;
};

export function connectPostgres(given: ConnectOptions): Sql {
  const { url, name, maxConnections, logger } = given;
  const sockets = new Set<Socket>();
  const { options = "", ...address } = clientSettings(url);
  const settings: pg.ClientConfig = {
    ...address,
    stream() {
      const socket = new Socket();
      sockets.add(socket);
      return socket.once("close", () => sockets.delete(socket));
    },
    application_name: name,
    keepAlive: true,
    keepAliveInitialDelayMillis: keepAliveAfterMs,
    pipeline: true,
    query_timeout: given.maxSilenceMs ?? maxSilenceMs,
    statement_timeout: statementTimeoutMs,
    idle_in_transaction_session_timeout: idleTransactionTimeoutMs,
    // PostgreSQL writes timestamps in JSON in the time zone of the session.
    options: `${options} -c TimeZone=UTC`,
    types: { getTypeParser },
  };
  // The type declarations do not contain the option `Client`.
  const poolSettings = { ...settings, Client: BoundedClient, max: maxConnections } as pg.PoolConfig;
  const pool = new Pool(poolSettings, logger);
  const statements = createStatements(async (form) => {
    const statement = form();
    const client = await pool.connect();
    let failure: unknown;
    try {
      return await run(client, statement);
    } catch (error) {
      failure = error;
      throw error;
    } finally {
      client.release(isConnectionOver(failure));
    }
  });
  return Object.assign(statements, {
    begin: <Result>(work: (tx: Transaction) => Promise<Result>) => transaction(pool, work),
    listen: (listening: Listening) => listen(() => new BoundedClient(settings), listening, logger),
    maxConnections,
    async end() {
      await withTimeout(pool.close());
      for (const socket of sockets) socket.destroy();
    },
  });
}

async function withTimeout(closed: Promise<void>): Promise<void> {
  const timeout = new AbortController();
  const lapsed = delay(closeTimeoutMs, undefined, { signal: timeout.signal });
  lapsed.catch(() => undefined);
  await Promise.race([closed, lapsed]);
  timeout.abort();
}

/** Returns the address and TLS settings of a connection, for services, migrations and setup. */
export function clientSettings(address: string): pg.ClientConfig {
  const { url, options, tls } = splitAddress(address);
  const ssl = tls.mode !== "off" && {
    rejectUnauthorized: tls.mode === "verified",
    ...(tls.ca === undefined ? {} : { ca: tls.ca }),
  };
  return { connectionString: url, ssl, ...(options === undefined ? {} : { options }) };
}

/** A client with a time-out for connecting. As a setting of the pool, it would also limit the wait for a connection. */
class BoundedClient extends pg.Client {
  constructor(settings?: pg.ClientConfig) {
    super({ ...settings, connectionTimeoutMillis: connectTimeoutMs });
  }
}

const { builtins } = pg.types;
const parsers: Record<number, (text: string) => unknown> = {
  [builtins.INT8]: Number,
  [builtins.DATE]: (text) => new Date(text),
  [builtins.TIMESTAMP]: (text) => new Date(text),
  [builtins.TIMESTAMPTZ]: (text) => new Date(text),
};

const getTypeParser = ((type: number) =>
  parsers[type] ?? pg.types.getTypeParser(type)) as typeof pg.types.getTypeParser;
