import pg from "pg";
import type { Logger } from "pino";
import { failureOf, PoolClosedError } from "./failures.ts";

/** A pool of connections. Closing it rejects callers that wait for a connection; the pool of `pg` would never do so. */
export class Pool {
  readonly #pool: pg.Pool;
  /** Functions that reject waiting callers. */
  readonly #waiting = new Set<(error: unknown) => void>();
  #closed: Promise<void> | undefined;

  constructor(settings: pg.PoolConfig, logger: Logger) {
    this.#pool = new pg.Pool({ ...settings, idleTimeoutMillis: 0 });
    // Without a listener, the loss of a connection would end the process. Statements on it reject anyway.
    this.#pool.on("error", (err) =>
      logger.debug({ err }, "an idle connection to PostgreSQL was lost"),
    );
    this.#pool.on("connect", (client) => {
      client.on("error", () => undefined);
      client.on("notice", ({ code }) => logger.debug({ code }, "PostgreSQL notice"));
    });
  }

  /** Returns a connection that belongs to the caller until its `release`. */
  connect(): Promise<pg.PoolClient> {
    const { promise, resolve, reject } = Promise.withResolvers<pg.PoolClient>();
    if (this.#closed !== undefined) {
      reject(new PoolClosedError());
      return promise;
    }
    this.#waiting.add(reject);
    this.#pool.connect((error, client) => {
      const isWaiting = this.#waiting.delete(reject);
      if (client === undefined) reject(failureOf(error));
      else if (isWaiting) resolve(client);
      else client.release(true);
    });
    return promise;
  }

  /** Closes the pool. Resolves when every connection is released and closed. */
  close(): Promise<void> {
    this.#closed ??= this.#pool.end();
    for (const reject of this.#waiting) reject(new PoolClosedError());
    this.#waiting.clear();
    return this.#closed;
  }
}
