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
 * Publishes quotas to the edges: the requests that each organization has used in the month. Each publication sends the
 * newest total of each month that has changed since the last one. That is usually the current month. About the
 * beginning of a month, when clocks differ, it can also be the previous or the next one.
 *
 * The bucket has one entry for each organization. The publisher follows the bucket, and writes an entry only over the
 * revision that it has read. So the number of a month never decreases, for any number of replicas. If another replica
 * was faster, the next publication compares again.
 *
 * A process can die between a commit and its publication. So the whole month is compared with the bucket every half
 * minute, and after each full read of the bucket. Only committed numbers are published. A number that is still higher
 * in the bucket than in the database therefore comes from commits that the database has lost in a restore. The requests
 * were made nevertheless, so the database adopts the number. Otherwise edges would enforce a higher number than
 * organizations can read.
 */
export type QuotaPublisher = {
  /** Queues the new totals of months, of a transaction that was committed at that time. */
  note(months: readonly QuotaEntry[], now: Date): void;
  stop(): Promise<void>;
};

const publishIntervalMs = 200;
const repairIntervalMs = 30_000;
/** Maximum number of publications awaited together. All pending entries are sent in such chunks. */
const chunkSize = 500;

/** The content of the bucket that has been read. An entry that cannot be parsed is overwritten. */
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
  /** The current month, as last read from the database's clock. */
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

  /** Tries each pending entry once. After a failure the rest waits for the next interval. */
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
    onFailure: (err) => logger.warn({ err }, "quotas could not be published"),
  });
  return {
    note(months, now) {
      presentMonth = monthOf(now.getTime());
      for (const entry of months) hold(pending, entry, presentMonth);
    },
    async stop() {
      await publishing.stop();
      // Publishes the last commits. If that fails, another replica publishes them.
      await publishPending();
      await bucket.stop();
    },
  };
}

/**
 * Returns whether an entry replaces the known one: it has more requests in the same month, or a later month. The
 * current month, by the database's clock, also replaces a later one. Otherwise, after a clock was ahead for a while,
 * edges would have no number for the current month until that later month begins.
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

/** Timeout of a publication. The broker responds within milliseconds. After this time the outcome is unknown. */
const acknowledgementTimeoutMs = 2_000;

const conflictCodes: number[] = [
  JetStreamApiCodes.StreamWrongLastSequence,
  JetStreamApiCodes.StreamWrongLastSequenceUnknown,
];

/**
 * Writes an entry over the revision that was read, or over revision 0 if the bucket had no entry. So a replica with an
 * older number never overwrites a newer one. Returns false if another replica was faster.
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
    if (error instanceof JetStreamApiError && conflictCodes.includes(error.code)) return false;
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

/**
 * Compares the current month of every organization. Returns the published entries that are higher than the database or
 * missing in it.
 */
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

/** Entries to publish, by organization and month. */
type Pending = Map<string, QuotaEntry>;

/** Queues an entry unless the queued one is as new. */
function hold(pending: Pending, entry: QuotaEntry, presentMonth: string | undefined): void {
  const key = pendingKey(entry);
  if (isUpdate(entry, pending.get(key), presentMonth)) pending.set(key, entry);
}

function pendingKey({ organization_id, month }: QuotaEntry): string {
  return `${organization_id} ${month}`;
}

/** Logs failed publications, which stay pending until the next interval. Returns their number. */
function logFailures(outcomes: readonly PromiseSettledResult<void>[], logger: Logger): number {
  const failed = outcomes.filter((outcome) => outcome.status === "rejected");
  const [first] = failed;
  if (first === undefined) return 0;
  if (!isBrokerUnavailable(first.reason)) throw first.reason;
  logger.warn(
    { err: first.reason, entries: failed.length },
    "NATS did not acknowledge quotas; they are sent again",
  );
  return failed.length;
}
