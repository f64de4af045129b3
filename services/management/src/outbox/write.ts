import { rollBackOnProblem, type Sql, type Transaction } from "@halyard/postgres";
import { isProblem, type Problem } from "@halyard/service";
import type { Effects, ExpectedEffect } from "./effects.ts";
import { appendMessages, type OutboxMessage } from "./outbox-message.ts";

/**
 * Every change of this service: a transaction that contains the change and the messages about it. After
 * the commit the change is safe. The writer then wakes the relay and waits, for a bounded time and without
 * a database connection, until the change is in effect. A refusal rolls back.
 */
export type Write = {
  tx: Transaction;
  /** Publishes with the commit, in this order. */
  publish(messages: readonly OutboxMessage[]): void;
  /**
   * Receives the last statements of the change, without a wait for their results. They are sent together with the
   * rows of the outbox and the commit. The transaction itself remembers a failed statement and rolls back
   * (`transaction` of libs/postgres), so their results can be dropped.
   */
  finish(statements: Promise<unknown>): void;
};

export type Writer = <T extends object>(
  work: (write: Write) => Promise<T | Problem>,
) => Promise<T | Problem>;

/** Creates a writer. workers.ts creates `wakeRelay` and `effects`: the relay, and the waits for it and the edges. */
export function createWriter(options: {
  sql: Sql;
  newId: () => string;
  /** Wakes the leader of the relay, in this process or another. */
  wakeRelay: () => void;
  /** Waits until a write is in effect (effects.ts); without it, writes do not wait. */
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
              // The commit is sent, but not answered.
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
 * The failure of a statement rejects the transaction. Its own rejection must not end the process. Functions that send
 * such a statement are not `async`, so that an error before it is sent rejects the work.
 */
function handled(statements: Promise<unknown>): void {
  statements.catch(() => undefined);
}
