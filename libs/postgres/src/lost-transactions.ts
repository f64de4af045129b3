import type postgres from "postgres";
import { ConnectionClosedError } from "./steady-socket.ts";

/**
 * Lets transactions end with their connection. When a connection is lost, the client library (postgres.js
 * 3.4) rejects the promise of the transaction on it, but cannot end the work of the transaction, which may
 * be waiting for something else. What the work asks for when it goes on, and the `rollback` or `commit`
 * after it, would be written to a socket that is null, which ends the process, or into the connection that
 * was made anew in its place.
 *
 * So work that outlives its transaction is refused by what it asks here, and the library does not hear of
 * its end.
 */
type AnySql = postgres.Sql<Record<string, never>>;
type AnyTransaction = postgres.TransactionSql<Record<string, never>>;
type Work = (tx: AnyTransaction) => unknown;

export function endTransactionsWithTheirConnections(sql: AnySql): void {
  const begin = sql.begin.bind(sql) as (options: string, work: Work) => Promise<unknown>;
  const beginBounded = async (options: string, work: Work) => {
    let isOver = false;
    try {
      return await begin(options, (tx) =>
        unlessOver(
          work,
          refusingWhen(() => isOver, tx),
          () => isOver,
        ),
      );
    } finally {
      isOver = true;
    }
  };
  sql.begin = ((...given: [Work] | [string, Work]) =>
    given.length === 1 ? beginBounded("", given[0]) : beginBounded(...given)) as AnySql["begin"];
}

/** The outcome of the work; nothing at all, ever, when the transaction was over before it. */
function unlessOver(work: Work, tx: AnyTransaction, isOver: () => boolean): Promise<unknown> {
  return new Promise((resolve, reject) => {
    const unless = (settle: (outcome: unknown) => void) => (outcome: unknown) => {
      if (!isOver()) settle(outcome);
    };
    outcomeOf(work, tx).then(unless(resolve), unless(reject));
  });
}

/** Work may be a list of statements, as the library has it. */
async function outcomeOf(work: Work, tx: AnyTransaction): Promise<unknown> {
  const outcome = work(tx);
  return Array.isArray(outcome) ? Promise.all(outcome) : outcome;
}

/** The same transaction, which takes no statement any more once it is over. */
function refusingWhen(isOver: () => boolean, tx: AnyTransaction): AnyTransaction {
  const refuse = () => {
    if (isOver()) throw new ConnectionClosedError("the transaction ended with its connection");
  };
  return new Proxy(tx, {
    apply(target, self, given) {
      refuse();
      return Reflect.apply(target as unknown as () => unknown, self, given);
    },
    get(target, name, receiver) {
      refuse();
      return Reflect.get(target, name, receiver);
    },
  });
}
