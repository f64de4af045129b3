import { entryKey, type PeopleAddress, peopleKey } from "@halyard/contracts";
import { isProblem, type Problem } from "@halyard/http";
import { rollBackOnProblem } from "@halyard/idempotency";
import type { Sql, Transaction } from "@halyard/postgres";
import { currentSpan, inStep, type TraceContext } from "@halyard/tracing";
import type { Effects, ExpectedEffect } from "./effects.ts";
import { isOfOutbox, type Message, type OutboxMessage } from "./outbox-message.ts";
import { type PeopleChange, putPeopleEntries } from "./people-entries.ts";

/**
 * A write: a transaction that contains a change and the messages about it. After the commit, the writer wakes the
 * relay. It then waits until the change is in effect, up to a time-out and without a database connection. A problem
 * rolls back the transaction.
 */
export type Write = {
  tx: Transaction;
  /** Publishes messages with the commit, in this order. */
  publish(messages: readonly Message[]): void;
  /** Counts the size of messages that a statement of the transaction has appended itself. They precede the others. */
  countMessages(bytes: number): void;
  /**
   * Ignores the results of statements that are already sent: the last statements of the change. The outbox rows and the
   * commit follow them in the same round trip. The transaction remembers a failed statement and rolls back
   * (`transaction` of libs/postgres).
   */
  doNotAwait(statements: Promise<unknown>): void;
  /** Sends statements after all others, immediately before the commit, because they take a lock for every writer. */
  beforeCommit(send: () => Promise<unknown>): void;
};

export type Writer = <T extends object>(
  work: (write: Write) => Promise<T | Problem>,
  /** Called with the size of the messages, before the commit. */
  onPublish?: (bytes: number) => void,
) => Promise<T | Problem>;

/** Creates a writer. `workers.ts` creates `wakeRelay` and `effects`. */
export function createWriter(options: {
  sql: Sql;
  newId: () => string;
  /** Wakes the leader of the relay, in this process or another. */
  wakeRelay: () => void;
  /** Waits until a write is in effect (effects.ts). Without it, writes do not wait. */
  effects?: Effects;
  /** Waits until this process has entries about people, up to a time-out. Without it, writes do not wait. */
  awaitPeople?: ((written: readonly WrittenEntry[]) => Promise<void>) | undefined;
}): Writer {
  const { sql, effects, awaitPeople, newId } = options;

  return async (work, onPublish) => {
    const messages: OutboxMessage[] = [];
    const people = new Map<string, PeopleChange>();
    let written: WrittenEntry[] = [];
    const last: (() => Promise<unknown>)[] = [];
    let pending: ExpectedEffect | undefined;
    let appendedBytes = 0;
    try {
      const result = await inTransaction(sql, async (tx, trace) => {
        const done = await work({
          tx,
          publish(more) {
            for (const message of more)
              if (isOfOutbox(message)) messages.push(message);
              else people.set(peopleKey(message.address), message);
          },
          countMessages(bytes) {
            appendedBytes += bytes;
          },
          doNotAwait: ignoreRejection,
          beforeCommit: (send) => void last.push(send),
        });
        if (isProblem(done)) return done;
        if (messages.length > 0) {
          const rows = messages.map((message) => rowOf(message, newId));
          onPublish?.(
            rows.reduce((sum, { payload }) => sum + Buffer.byteLength(payload), appendedBytes),
          );
          ignoreRejection(
            appendRows(tx, rows, trace).then((rowIds) => {
              // The commit is sent, but not confirmed yet. Events are not awaited: they change nothing that an edge
              // serves, and those of an organization can wait for webhook dispatchers.
              const entryIds = rowIds.filter((_, at) => rows[at]?.stream === "snapshot");
              if (entryIds.length > 0) pending = effects?.expect(entryIds);
            }),
          );
        }
        if (people.size > 0) written = await putPeople(tx, [...people.values()]);
        for (const send of last) ignoreRejection(send());
        return done;
      });
      if (isProblem(result)) return result;
      if (messages.length + written.length > 0) options.wakeRelay();
      await inStep("await edges", async () => pending?.wait(messages));
      if (written.length > 0) await awaitPeople?.(written);
      return result;
    } finally {
      pending?.forget();
    }
  };
}

/** Runs a transaction. Its messages continue the trace of the given context. */
function inTransaction<T extends object>(
  sql: Sql,
  work: (tx: Transaction, trace: TraceContext | undefined) => Promise<T | Problem>,
): Promise<T | Problem> {
  return inStep("transaction", () => {
    const trace = currentSpan()?.context;
    return rollBackOnProblem(sql, (tx) => work(tx, trace));
  });
}

/** The new version of an entry about people. */
export type WrittenEntry = { address: PeopleAddress; version: number };

async function putPeople(
  tx: Transaction,
  changes: readonly PeopleChange[],
): Promise<WrittenEntry[]> {
  const versions = await putPeopleEntries(tx, changes);
  return changes.map(({ address }, index) => ({ address, version: versions[index] ?? 0 }));
}

/** Appends messages to the outbox in this order. Returns the ids of the rows. */
export function appendMessages(
  tx: Transaction,
  messages: readonly OutboxMessage[],
  newId: () => string,
): Promise<number[]> {
  return appendRows(
    tx,
    messages.map((message) => rowOf(message, newId)),
    currentSpan()?.context,
  );
}

function appendRows(
  tx: Transaction,
  rows: readonly OutboxRow[],
  trace: TraceContext | undefined,
): Promise<number[]> {
  // Booleans are sent as text, because the client library mistakes an array of them for a single one.
  const inserted = tx<{ id: number }[]>`
    insert into outbox (stream, message_id, subject, payload, tombstone, traceparent, tracestate)
    select message.stream, message.message_id, message.subject, message.payload,
      message.tombstone::boolean, ${trace?.traceparent ?? null}::text,
      ${trace?.tracestate ?? null}::text
    from unnest(
      ${rows.map((row) => row.stream)}::text[],
      ${rows.map((row) => row.message_id)}::uuid[],
      ${rows.map((row) => row.subject)}::text[],
      ${rows.map((row) => row.payload)}::text[],
      ${rows.map((row) => String(row.tombstone))}::text[]
    ) with ordinality as message (stream, message_id, subject, payload, tombstone, position)
    order by message.position
    returning id`;
  return inserted.then((added) => added.map((row) => row.id));
}

type OutboxRow = {
  stream: "events" | "snapshot";
  message_id: string;
  /** The subject of an event, or the key of an entry without the prefix of the bucket. */
  subject: string;
  payload: string;
  tombstone: boolean;
};

function rowOf(message: OutboxMessage, newId: () => string): OutboxRow {
  if (message.stream === "events")
    return {
      stream: "events",
      message_id: message.event.id,
      subject: message.event.event,
      payload: JSON.stringify(message.event),
      tombstone: false,
    };
  return {
    stream: "snapshot",
    message_id: newId(),
    subject: entryKey(message.address),
    payload: JSON.stringify(message.value),
    tombstone: "deleted" in message.value,
  };
}

/**
 * Ignores the rejection of a statement, which would otherwise end the process. The transaction rejects too. Functions
 * that send such a statement are not `async`, so that an error before the statement is sent still rejects the work.
 */
function ignoreRejection(statements: Promise<unknown>): void {
  statements.catch(() => undefined);
}
