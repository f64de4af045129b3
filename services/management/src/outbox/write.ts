import { rollBackOnProblem, type Sql, type Transaction } from "@halyard/postgres";
import { isProblem, type Problem } from "@halyard/service";
import type { Effects, ExpectedEffect } from "./effects.ts";
import { appendMessages, type OutboxMessage } from "./outbox-message.ts";

/**
 * A write: a transaction that contains a change and the messages about it. After the commit, the writer wakes the
 * relay. It then waits until the change is in effect, up to a time-out and without a database connection. A problem
 * rolls back the transaction.
 */
export type Write = {
  tx: Transaction;
  /** Publishes messages with the commit, in this order. */
  publish(messages: readonly OutboxMessage[]): void;
  /**
   * Takes the last statements of the change without waiting for their results. They are sent together with the outbox
   * rows and the commit. The transaction remembers a failed statement and rolls back (`transaction` of libs/postgres),
   * so their results can be ignored.
   */
  finish(statements: Promise<unknown>): void;
};

export type Writer = <T extends object>(
  work: (write: Write) => Promise<T | Problem>,
) => Promise<T | Problem>;

/** Creates a writer. `workers.ts` creates `wakeRelay` and `effects`. */
export function createWriter(options: {
  sql: Sql;
  newId: () => string;
  /** Wakes the leader of the relay, in this process or another. */
  wakeRelay: () => void;
  /** Waits until a write is in effect (effects.ts). Without it, writes do not wait. */
  effects?: Effects;
}): Writer {
  const { sql, effects, newId } = options;

  return async (work) => {
    const messages: OutboxMessage[] = [];
    let pending: ExpectedEffect | undefined;
    try {
      const result = await rollBackOnProblem(sql, async (tx) => {
        const done = await work({
          tx,
          publish: (more) => void messages.push(...more),
          finish: handled,
        });
        if (!isProblem(done) && messages.length > 0)
          handled(
            appendMessages(tx, messages, newId).then((rowIds) => {
              // The commit is sent, but not confirmed yet.
              pending = effects?.expect(rowIds);
            }),
          );
        return done;
      });
      if (isProblem(result)) return result;
      if (messages.length > 0) options.wakeRelay();
      await pending?.wait(messages);
      return result;
    } finally {
      pending?.forget();
    }
  };
}

/**
 * Ignores the rejection of a statement, which would otherwise end the process. The transaction rejects too. Functions
 * that send such a statement are not `async`, so that an error before the statement is sent still rejects the work.
 */
function handled(statements: Promise<unknown>): void {
  statements.catch(() => undefined);
}
