import type pg from "pg";
import { failureOf, isConnectionOver } from "./failures.ts";
import type { Pool } from "./pool.ts";
import { createStatements, type Rows, type Statement, type Statements } from "./statements.ts";

/** Statements of a transaction. Each one is sent immediately, without waiting for the results of earlier ones. */
export type Transaction = Statements & { readonly isTransaction: true };

/**
 * Runs the work in a transaction on its own connection, then commits. Statements that the work does not await are
 * pipelined with the commit. If the work rejects or any statement fails, even if the work ignores its error, the
 * transaction rolls back and rejects. If the connection is lost during the commit, it rejects, and the outcome is
 * unknown.
 */
export async function transaction<Result>(
  pool: Pool,
  work: (tx: Transaction) => Promise<Result>,
): Promise<Result> {
  const client = await pool.connect();
  let isOver = false;
  let firstFailure: unknown;
  let lastSettled = Promise.resolve();
  const watched = <Answer>(sent: Promise<Answer>): Promise<Answer> => {
    const answered = sent.catch((error: unknown) => {
      // After a failed statement, PostgreSQL rejects the others because the transaction is aborted. The first error is
      // the cause.
      firstFailure ??= error;
      throw firstFailure;
    });
    lastSettled = answered.then(
      () => undefined,
      () => undefined,
    );
    return answered;
  };
  const send = async (form: () => Statement) => {
    if (isOver) throw new Error("The transaction is over.");
    // After a failed BEGIN, PostgreSQL would commit each statement separately.
    if (firstFailure !== undefined) throw firstFailure;
    return run(client, form());
  };
  const statements = createStatements((form) => watched(send(form)));
  let isBroken = false;
  try {
    void watched(query(client, { text: "begin" }));
    const result = await work(Object.assign(statements, { isTransaction: true } as const));
    isOver = true;
    if (firstFailure !== undefined) throw firstFailure;
    const { command } = await query(client, { text: "commit" });
    await lastSettled;
    if (command !== "COMMIT" || firstFailure !== undefined)
      throw firstFailure ?? new Error("The transaction was rolled back.");
    return result;
  } catch (error) {
    isOver = true;
    isBroken = await query(client, { text: "rollback" }).then(
      () => isConnectionOver(firstFailure),
      () => true,
    );
    throw error;
  } finally {
    client.release(isBroken);
  }
}

export async function run(
  client: pg.Client,
  statement: Statement,
): Promise<Rows<Record<string, unknown>[]>> {
  const { rows, rowCount } = await query(client, statement);
  // The property is not enumerable, because rows are compared and serialized as a list.
  return Object.defineProperty(rows, "count", { value: rowCount ?? 0 }) as typeof rows & {
    count: number;
  };
}

async function query(client: pg.Client, statement: Statement): Promise<pg.QueryResult> {
  try {
    sendTogether(client);
    return await client.query(statement);
  } catch (error) {
    throw failureOf(error);
  }
}

/**
 * Sends the statements of one turn of the event loop together, so that pipelined statements cost one system call. It
 * corks the stream, because Node removes a replaced `write` of a socket when the socket connects.
 */
function sendTogether({ connection: { stream } }: pg.Client): void {
  if (stream.writableCorked > 0) return;
  stream.cork();
  process.nextTick(() => stream.uncork());
}
