import type { EntrySigner } from "@halyard/api-keys";
import {
  type AudienceEvent,
  type ChangeRequestEvent,
  type EntryKind,
  type FlagEvent,
  isSignedEntry,
  parseEntryKey,
  type SnapshotRevision,
  snapshotBatchEntries,
  snapshotBucket,
} from "@halyard/contracts";
import { type OutgoingMessage, publishFenced, type SignMessage } from "@halyard/jetstream";
import type { Sql } from "@halyard/postgres";
import type { Publications } from "../outbox/effects.ts";
import {
  allUnsentRows,
  eventQueueOf,
  fairUnsentRows,
  type QueueKind,
  type StreamName,
  type UnsentRow,
  unsentRange,
} from "../outbox/unsent-rows.ts";
import { type Broker, StreamMovedError } from "./broker.ts";
import { LeadershipLostError, type Lease } from "./lease.ts";
import { recordAdvanced, recordSent, type SettledRow } from "./records.ts";
import { publishInSpans } from "./trace-sends.ts";
import type { UnreadEvents } from "./unread-events.ts";

/**
 * Publishes the outbox rows of one stream. It reads a batch of unsent rows, publishes it after the last sequence of the
 * stream, confirms it to waiting writes, and records it. Only one batch is in flight, so the rows of an entity are
 * published in order. If a batch contains several values of an entry, only the newest is published, and the others are
 * settled with it.
 */
export type StreamPublisher = {
  /** Publishes all unsent rows, or at most `maxPasses` batches of each kind. Returns the number of messages. */
  drain(bounds?: { maxPasses: number }): Promise<number>;
  /** Publishes every row that is unsent now. It ends even if new rows keep arriving. */
  drainPresent(): Promise<void>;
  /**
   * Publishes messages without rows, as one batch. Rows that were unsent when the caller read the values are published
   * afterwards, so the newest value of an entry is always the last one.
   */
  write(messages: readonly OutgoingMessage[]): Promise<void>;
  /** Returns the last sequence that is recorded as published. */
  lastSequence(): number;
};

type StreamPublisherOptions = {
  stream: StreamName;
  sql: Sql;
  lease: Lease;
  broker: Broker;
  publications: Publications;
  /** The epoch, for the publisher of the snapshot. */
  epoch?: string;
  /** Signs the entries of the snapshot. */
  signer?: EntrySigner | undefined;
  /** Signs the events of the event log. */
  sign?: SignMessage;
  /** The last sequence of the stream when the publisher starts. */
  lastSequence: number;
  /** The unread events, for the publisher of events. */
  unread?: UnreadEvents | undefined;
  isLeading: () => boolean;
};

/** Bounds of a batch: large enough that a burst needs few round trips, small enough that a batch takes milliseconds. */
const batchBounds = { rows: snapshotBatchEntries, bytes: 4 * 1024 * 1024 };

export function createStreamPublisher(options: StreamPublisherOptions): StreamPublisher {
  const { stream, sql, unread } = options;
  const batchPublisher = createBatchPublisher(options);
  const nextPass = createPassReader(sql, stream, () => unread?.waiting().map(eventQueueOf) ?? []);

  /** Publishes one batch, or one of each kind. Returns the number of messages, and whether rows may be left. */
  async function publishPass(): Promise<{ messages: number; hasMore: boolean }> {
    let messages = 0;
    let hasMore = false;
    for await (const batch of nextPass()) {
      messages += await batchPublisher.publishRows(batch.rows);
      hasMore = batch.hasMore;
    }
    return { messages, hasMore };
  }

  return {
    async drain({ maxPasses } = { maxPasses: Number.POSITIVE_INFINITY }) {
      let sent = 0;
      for (let pass = 0; pass < maxPasses; pass += 1) {
        const { messages, hasMore } = await publishPass();
        sent += messages;
        if (!hasMore) break;
      }
      return sent;
    },
    async drainPresent() {
      const { newest } = await unsentRange(sql, stream);
      if (newest === undefined) return;
      let oldest: number | undefined;
      do {
        await publishPass();
        oldest = (await unsentRange(sql, stream)).oldest;
      } while (oldest !== undefined && oldest <= newest);
    },
    write: batchPublisher.publishMessages,
    lastSequence: batchPublisher.lastSequence,
  };
}

/**
 * Kinds of rows in each stream. Their batches alternate, so a revocation waits for at most one batch of flags, and a
 * flag for one batch of keys.
 */
const kindsOf: Readonly<Record<StreamName, readonly QueueKind[]>> = {
  events: ["events"],
  snapshot: ["keys", "flags"],
};

/**
 * Creates a function that reads the batches of one pass. If all unsent rows fit into one batch, the pass has that
 * batch; otherwise it has the next batch of each kind. The first queue of a kind follows its last one. The queues that
 * wait are left out.
 */
function createPassReader(sql: Sql, stream: StreamName, waitingQueues: () => readonly string[]) {
  const lastQueues = new Map<QueueKind, string | undefined>();
  /** True if the last batch of a kind was full, so that all rows do not fit into one batch. */
  let isBehind = false;

  async function nextBatch(kind: QueueKind, except: readonly string[]): Promise<UnsentRow[]> {
    const afterQueue = lastQueues.get(kind);
    const batch = await fairUnsentRows(sql, kind, { ...batchBounds, afterQueue, except });
    lastQueues.set(kind, batch.lastQueue);
    return batch.rows.length === 0 && afterQueue !== undefined
      ? nextBatch(kind, except)
      : batch.rows;
  }

  return async function* pass(): AsyncGenerator<{ rows: UnsentRow[]; hasMore: boolean }> {
    const waiting = waitingQueues();
    const mayTakeAll = !isBehind && waiting.length === 0;
    const all = mayTakeAll ? await allUnsentRows(sql, stream, batchBounds) : undefined;
    isBehind = false;
    if (all !== undefined) {
      yield { rows: all, hasMore: false };
      return;
    }
    for (const kind of kindsOf[stream]) {
      const rows = await nextBatch(kind, waiting);
      isBehind ||= rows.length === batchBounds.rows;
      // Without queues that wait, the next pass finds out.
      yield { rows, hasMore: waiting.length === 0 || rows.length > 0 };
    }
  };
}

/** Publishes batches after the last sequence of the stream, and records them. */
function createBatchPublisher({
  stream,
  lease,
  broker,
  publications,
  ...options
}: StreamPublisherOptions) {
  const { epoch, signer, sign, unread } = options;
  let lastSequence = options.lastSequence;

  function assertLeading(): void {
    if (!options.isLeading()) throw new LeadershipLostError("the lease has ended");
  }

  async function record(rows: readonly SettledRow[], acknowledged: number): Promise<void> {
    const revision = revisionOf(epoch, acknowledged);
    if (revision !== undefined)
      publications.confirm(
        rows.map(({ id }) => id),
        revision,
      );
    const sequences = { lastSequence: acknowledged, recordedBefore: lastSequence };
    await lease.recordAsLeader((tx) => recordSent(tx, stream, rows, { ...sequences, revision }));
  }

  return {
    lastSequence: () => lastSequence,

    /** Publishes rows. Returns the number of messages. */
    async publishRows(rows: readonly UnsentRow[]): Promise<number> {
      if (rows.length === 0) return 0;
      assertLeading();
      const values = stream === "events" ? everyValue(rows) : newestValues(rows);
      const messages = await Promise.all(
        values.map(
          ({ row }): Promise<Outgoing> =>
            stream === "events" ? outgoingEvent(row, sign) : outgoingEntry(row, signer),
        ),
      );
      const { sequences, failure } = await publishInSpans(stream, values, messages, (traced) =>
        publishFenced(broker.client, traced, lastSequence),
      );
      const acknowledged = sequences.at(-1);
      if (acknowledged !== undefined) await record(settledBy(values, sequences), acknowledged);
      if (failure !== undefined)
        throw new StreamMovedError("not everything was acknowledged", { cause: failure });
      lastSequence += messages.length;
      if (acknowledged !== lastSequence)
        throw new StreamMovedError("the broker reported a duplicate message");
      for (const { organizationId, payload } of messages)
        if (organizationId !== undefined)
          unread?.add(organizationId, { lastSequence, bytes: Buffer.byteLength(payload) });
      return messages.length;
    },

    async publishMessages(messages: readonly OutgoingMessage[]): Promise<void> {
      assertLeading();
      const recordedBefore = lastSequence;
      const { failure } = await publishFenced(broker.client, messages, lastSequence);
      if (failure !== undefined)
        throw new StreamMovedError("not everything was acknowledged", { cause: failure });
      lastSequence += messages.length;
      await lease.recordAsLeader((tx) =>
        recordAdvanced(tx, stream, { lastSequence, recordedBefore }),
      );
    },
  };
}

function revisionOf(epoch: string | undefined, sequence: number): SnapshotRevision | undefined {
  return epoch === undefined ? undefined : { epoch, revision: sequence };
}

type Outgoing = OutgoingMessage & {
  /** The organization of an event. */
  organizationId?: string | undefined;
};

/**
 * Returns the message of a row. The entity of an event is what it is about. The leader signs when it publishes, so a row that was
 * written before a rotation, or by an earlier release, has the current signer. A repeated row has the same signature,
 * unless the key was rotated in between.
 */
async function outgoingEvent(
  { subject, payload, messageId }: UnsentRow,
  sign?: SignMessage,
): Promise<Outgoing> {
  const head = headOfEvent(payload);
  const { flag, audience, environment, organization_id: organizationId } = head;
  const signature = await sign?.({ subject, payload, messageId });
  const message = { subject, payload, messageId, signature, organizationId };
  const entity = flag?.id ?? audience?.key ?? head.change_request?.id ?? environment?.id;
  return { ...message, ...(entity !== undefined && { entity }) };
}

/**
 * Parses an event up to its states, which can be a megabyte. The organization and the flag precede them. A text inside
 * the event cannot contain the searched one, because its quotes are escaped.
 */
export function headOfEvent(payload: string): EventHead {
  const end = payload.indexOf(',"state":{');
  return JSON.parse(end < 0 ? payload : `${payload.slice(0, end)}}`) as EventHead;
}

type EventHead = Partial<
  Pick<FlagEvent, "organization_id" | "flag" | "environment"> &
    Pick<AudienceEvent, "audience"> &
    Pick<ChangeRequestEvent, "change_request">
>;

/**
 * Returns an entry as published, with a signature if it needs one. The leader signs at the time of publication. So all
 * entries of a snapshot, including those in rows of other replicas, have the signer that `complete` names.
 */
export async function outgoingEntry(
  { subject: key, payload }: Pick<UnsentRow, "subject" | "payload">,
  signer: EntrySigner | undefined,
): Promise<OutgoingMessage> {
  const subject = snapshotBucket.subjectPrefix + key;
  const address = parseEntryKey(key);
  if (signer === undefined || address === undefined || unsignedKinds.has(address.kind))
    return { subject, payload };
  const isSigned = isSignedEntry({ address, value: JSON.parse(payload) });
  return { subject, payload: isSigned ? await signer.sign(key, payload) : payload };
}

/** Kinds of entries that never have a signature. Their values can be large, and are not parsed. */
const unsignedKinds: ReadonlySet<EntryKind> = new Set(["flag", "audience", "chunk"]);

type ValueToPublish = {
  row: UnsentRow;
  /** The rows with older values of the same entry. */
  superseded: readonly UnsentRow[];
};

/** Returns the newest value of each entry, in the order of the rows. */
function newestValues(rows: readonly UnsentRow[]): ValueToPublish[] {
  const newest = new Map<string, ValueToPublish>();
  for (const row of rows) {
    const before = newest.get(row.subject);
    const superseded = before === undefined ? [] : [...before.superseded, before.row];
    // The deletion moves the entry to the position of its newest value.
    newest.delete(row.subject);
    newest.set(row.subject, { row, superseded });
  }
  return [...newest.values()];
}

const everyValue = (rows: readonly UnsentRow[]): ValueToPublish[] =>
  rows.map((row) => ({ row, superseded: [] }));

/**
 * Returns the rows that acknowledged messages settle. Messages after a missing acknowledgement may follow a message of
 * another client. They stay unrecorded, so that the next term compares everything from there on.
 */
function settledBy(values: readonly ValueToPublish[], sequences: readonly number[]): SettledRow[] {
  return values.flatMap(({ row, superseded }, index) => {
    const sequence = sequences[index];
    if (sequence === undefined) return [];
    return [{ id: row.id, sequence }, ...superseded.map(({ id }) => ({ id, sequence: null }))];
  });
}
