import { once } from "node:events";
import { setTimeout as delay } from "node:timers/promises";
import type { Sql, Transaction } from "@halyard/postgres";
import type { Refusal } from "@halyard/service";
import { isRefusal } from "@halyard/service";
import { appendMessages } from "./append-messages.ts";
import type { OutboxMessage } from "./outbox-message.ts";
import type { Publications } from "./publications.ts";

/**
 * The one way in which this service changes anything: a transaction that holds the change and what is
 * to be told about it. When it has committed, the relay is woken, and the caller is answered when the
 * broker has everything, or after half a second if that takes longer: the change is safe either way.
 * A refusal rolls back, so that nothing is half done.
 */
export type Write = {
  tx: Transaction;
  /** Publishes with the commit, in this order. */
  publish(messages: readonly OutboxMessage[]): void;
};

export type Writer = <T extends object>(
  work: (write: Write) => Promise<T | Refusal>,
) => Promise<T | Refusal>;

/** How long an answer waits for the broker. */
const publicationPatienceMs = 500;

export function createWriter(options: {
  sql: Sql;
  publications: Publications;
  newId: () => string;
  /** Tells whoever leads the relay that there is something to publish. */
  wakeRelay: () => void;
  /**
   * Whether this process itself already goes by what a message says. An answer waits for that too:
   * who was given a key may use it here at once.
   */
  isInEffect: (message: OutboxMessage) => boolean;
}): Writer {
  const { sql, publications, newId } = options;

  return async (work) => {
    const messages: OutboxMessage[] = [];
    let pending: ReturnType<Publications["expect"]> | undefined;
    try {
      const result = await sql.begin(async (plainTransaction) => {
        const tx = plainTransaction as unknown as Transaction;
        const appending: Promise<number[]>[] = [];
        const done = await work({
          tx,
          publish: (more) => {
            messages.push(...more);
            const appended = appendMessages(tx, more, newId);
            // Heard of below, unless something else fails first and rolls back anyway.
            appended.catch(() => undefined);
            appending.push(appended);
          },
        });
        if (isRefusal(done)) throw new RolledBack(done);
        if (appending.length > 0)
          pending = publications.expect((await Promise.all(appending)).flat());
        return { done };
      });
      if (pending !== undefined) {
        options.wakeRelay();
        await resolvedOrLate(pending.confirmed, () => messages.every(options.isInEffect));
      }
      return result.done;
    } catch (error) {
      if (error instanceof RolledBack) return error.refusal;
      throw error;
    } finally {
      pending?.forget();
    }
  };
}

/** Carries a refusal out of a transaction that is to be rolled back. */
class RolledBack extends Error {
  override name = "RolledBack";
  readonly refusal: Refusal;

  constructor(refusal: Refusal) {
    super("rolled back");
    this.refusal = refusal;
  }
}

/** What was published comes back to this process a moment after the broker has acknowledged it. */
const lookAgainAfterMs = 1;

async function resolvedOrLate(confirmed: Promise<void>, inEffect: () => boolean): Promise<void> {
  const late = new AbortController();
  const timer = setTimeout(() => late.abort(), publicationPatienceMs);
  const isLate = once(late.signal, "abort");
  await Promise.race([confirmed, isLate]);
  while (!late.signal.aborted && !inEffect()) await delay(lookAgainAfterMs);
  clearTimeout(timer);
}
