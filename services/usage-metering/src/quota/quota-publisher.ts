import { checkQuotaEntry, type QuotaEntry, quotaBucket } from "@halyard/contracts";
import { followBucket, isBrokerUnavailable, parseJson } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import {
  JetStreamApiCodes,
  JetStreamApiError,
  type JetStreamClient,
  jetstream,
} from "@nats-io/jetstream";
import type { NatsConnection } from "@nats-io/transport-node";
import type { Logger } from "pino";
import { monthOf } from "../counting/decide-sums.ts";
import type { UsageMetrics } from "../counting/usage-metrics.ts";
import { adoptHigherMonths, readPresentMonth } from "./quota-store.ts";

/**
 * Tells edges what organizations have used of their months. What a commit has changed goes out with the
 * next round, each month's newest number once: mostly that of the present month, and about its turn, when
 * clocks differ, that of the one before or after it.
 *
 * The bucket has one entry for each organization. It is followed, and an entry is written only over the
 * one that was read. So the number of a month never falls, however many replicas there are: who finds
 * that another was faster looks again at the next round whether there is still something to say.
 *
 * A process can die between commit and round. So every half minute, and whenever the bucket was read anew,
 * the whole month is compared with the bucket. Only committed numbers are published. So a number that is
 * still higher in the bucket than in the database comes from commits that the database has lost in a
 * restore; the requests were made all the same, and the database adopts it. Otherwise edges would enforce a
 * higher number than organizations can read.
 */
export type QuotaPublisher = {
  /** What months have come to, by a transaction that was committed at that time. */
  note(months: readonly QuotaEntry[], now: Date): void;
  stop(): Promise<void>;
};

const publishIntervalMs = 200;
const repairIntervalMs = 30_000;
/** How many publications are awaited together; a round goes through all that is pending. */
const chunkSize = 500;

/** What the bucket says, as far as it has been read. An entry that cannot be read is written over. */
type Published = Map<string, { entry: QuotaEntry | undefined; revision: number }>;

type PublisherOptions = {
  connection: NatsConnection;
  sql: Sql;
  usageMetrics: UsageMetrics;
  logger: Logger;
};

export function startQuotaPublisher(options: PublisherOptions): QuotaPublisher {
  const { sql, usageMetrics, logger } = options;
  const client = jetstream(options.connection);
  const pending: Pending = new Map();
  /** As the database said last. */
  let presentMonth: string | undefined;
  let comparedAtMs = Number.NEGATIVE_INFINITY;

  const bucket = followPublished(options, () => {
    comparedAtMs = Number.NEGATIVE_INFINITY;
  });

  async function publishChanges(): Promise<void> {
    if (!bucket.isCurrent()) return;
    await publishPending();
    if (performance.now() - comparedAtMs >= repairIntervalMs) await compare();
  }

  async function compare(): Promise<void> {
    const read = bucket.published();
    const higher = await compareWithMonth(sql, read, (entry, known) => {
      presentMonth = entry.month;
      if (!isUpdate(entry, known, presentMonth)) return;
      if (!pending.has(pendingKey(entry))) usageMetrics.quotaRepaired();
      hold(pending, entry, presentMonth);
    });
    await adopt(sql, higher, logger);
    if (read === bucket.published()) comparedAtMs = performance.now();
  }

  /** Each that is pending now is tried once; where NATS takes nothing, the rest waits for the next round. */
  async function publishPending(): Promise<void> {
    const keys = [...pending.keys()];
    for (let from = 0; from < keys.length && bucket.isCurrent(); from += chunkSize) {
      const chunk = keys.slice(from, from + chunkSize);
      const outcomes = await Promise.allSettled(chunk.map(publish));
      if (logFailures(outcomes, logger) > 0) return;
    }
  }

  async function publish(key: string): Promise<void> {
    const entry = pending.get(key);
    if (entry === undefined) return;
    const read = bucket.published();
    if (isUpdate(entry, read.get(entry.organization_id)?.entry, presentMonth)) {
      if (!(await publishEntry(client, entry, read))) return;
      usageMetrics.quotaPublished();
    }
    if (pending.get(key) === entry) pending.delete(key);
  }

  const publishing = startInterval(publishChanges, {
    intervalMs: publishIntervalMs,
    isExpected: (error) => isBrokerUnavailable(error) || isOutage(error),
    onFailure: (err) => logger.warn({ err }, "figures of months are not published now"),
  });
  return {
    note(months, now) {
      presentMonth = monthOf(now.getTime());
      for (const entry of months) hold(pending, entry, presentMonth);
    },
    async stop() {
      await publishing.stop();
      // What was committed last; where it cannot be said now, another replica says it.
      await publishPending();
      await bucket.stop();
    },
  };
}

/**
 * Whether an entry says more than the one that is known: it has more of the same month, or is of a later
 * one. The present month, by the database's clock, is news over one that lies ahead as well: a clock that
 * was ahead for a while must not leave edges without the present month's figure until that one comes.
 */
export function isUpdate(
  entry: QuotaEntry,
  known: QuotaEntry | undefined,
  presentMonth: string | undefined,
): boolean {
  if (known === undefined) return true;
  if (known.month === entry.month) return known.requests < entry.requests;
  return known.month < entry.month || entry.month === presentMonth;
}

/** The broker answers in milliseconds; after this time it counts as away and the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

const anotherWasFaster: number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

/**
 * Writes an entry over the one that was read, or in a place where none was (revision 0), so that of two
 * replicas the one that knows less never writes over the other. Returns whether it was written; false
 * when another replica was faster.
 */
async function publishEntry(
  client: JetStreamClient,
  entry: QuotaEntry,
  read: Published,
): Promise<boolean> {
  const id = entry.organization_id;
  try {
    const { seq } = await client.publish(quotaBucket.subjectPrefix + id, JSON.stringify(entry), {
      expect: { lastSubjectSequence: read.get(id)?.revision ?? 0 },
      timeout: acknowledgementTimeoutMs,
      retries: 0,
    });
    // After another full read, `read` is no longer in use.
    if (seq > (read.get(id)?.revision ?? 0)) read.set(id, { entry, revision: seq });
    return true;
  } catch (error) {
    if (error instanceof JetStreamApiError && anotherWasFaster.includes(error.code)) return false;
    throw error;
  }
}

/** Follows the bucket. `published` returns another object after each new full read. */
function followPublished({ connection, logger }: PublisherOptions, onCaughtUp: () => void) {
  let published: Published = new Map();
  const { isCurrent, stop } = followBucket({
    connection,
    bucket: quotaBucket,
    filter: ">",
    onBegin() {
      published = new Map();
    },
    onEntry({ key, payload, revision }) {
      const checked = checkQuotaEntry(parseJson(payload));
      published.set(key, { entry: checked.ok ? checked.value : undefined, revision });
    },
    onCaughtUp,
    logger,
  });
  return { isCurrent, stop, published: () => published };
}

/** Compares the present month of every organization. Returns published entries that are not matched by it. */
async function compareWithMonth(
  sql: Sql,
  published: Published,
  onEntry: (entry: QuotaEntry, known: QuotaEntry | undefined) => void,
): Promise<QuotaEntry[]> {
  const unmatched = new Map(published);
  for await (const page of readPresentMonth(sql))
    for (const entry of page) {
      const known = published.get(entry.organization_id)?.entry;
      if (known === undefined || known.requests <= entry.requests)
        unmatched.delete(entry.organization_id);
      onEntry(entry, known);
    }
  return [...unmatched.values()].flatMap(({ entry }) => (entry === undefined ? [] : [entry]));
}

async function adopt(sql: Sql, higher: readonly QuotaEntry[], logger: Logger): Promise<void> {
  const organizations = await adoptHigherMonths(sql, higher);
  if (organizations > 0)
    logger.warn({ organizations }, "adopted published months that the database had lost");
}

/** Entries that are not published yet, by organization and month. */
type Pending = Map<string, QuotaEntry>;

/** Keeps an entry to be published, unless one that says as much is kept. */
function hold(pending: Pending, entry: QuotaEntry, presentMonth: string | undefined): void {
  const key = pendingKey(entry);
  if (isUpdate(entry, pending.get(key), presentMonth)) pending.set(key, entry);
}

function pendingKey({ organization_id, month }: QuotaEntry): string {
  return `${organization_id} ${month}`;
}

/** What NATS did not take is still pending, and goes out with the next round. Answers how much that is. */
function logFailures(outcomes: readonly PromiseSettledResult<void>[], logger: Logger): number {
  const failed = outcomes.filter((outcome) => outcome.status === "rejected");
  const [first] = failed;
  if (first === undefined) return 0;
  if (!isBrokerUnavailable(first.reason)) throw first.reason;
  logger.warn(
    { err: first.reason, entries: failed.length },
    "figures of months were not taken by NATS; they are sent again",
  );
  return failed.length;
}
