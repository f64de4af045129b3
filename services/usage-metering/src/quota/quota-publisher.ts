import {
  checkQuotaEntry,
  everythingFilter,
  type QuotaEntry,
  quotaBucket,
} from "@halyard/contracts";
import { followBucket, isBrokerUnavailable, parseJson, publishOnce } from "@halyard/jetstream";
import { isOutage, type Sql } from "@halyard/postgres";
import { startInterval } from "@halyard/timing";
import { jetstream } from "@nats-io/jetstream";
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
 * The bucket has one entry for each organization. Every replica follows the bucket and publishes committed totals that
 * exceed its entries. Two replicas that publish at the same time can leave the lower total in the bucket. Edges keep
 * the highest total of each month, so only an edge that starts meanwhile reads a total that is too low.
 *
 * A comparison of the whole month with the bucket repairs this, and totals whose process died between the commit and
 * the publication. It runs every half minute, and after each full read of the bucket. Only committed totals are
 * published. A total that is still higher in the bucket than in the database therefore comes from commits that the
 * database has lost in a restore. The requests were made nevertheless, so the database adopts the total. Otherwise edges
 * would enforce a higher total than organizations can read.
 */
type QuotaPublisher = {
  /** Queues the new totals of months, of a transaction that was committed at that time. */
  note(months: readonly QuotaEntry[], now: Date): void;
  stop(): Promise<void>;
};

const publishIntervalMs = 200;
const defaultCompareIntervalMs = 30_000;
/** Maximum number of publications awaited together. All pending entries are sent in such chunks. */
const chunkSize = 500;

type PublisherOptions = {
  connection: NatsConnection;
  sql: Sql;
  usageMetrics: UsageMetrics;
  /** Interval of the comparisons of the whole month. */
  compareIntervalMs?: number | undefined;
  logger: Logger;
};

export function startQuotaPublisher(options: PublisherOptions): QuotaPublisher {
  const { usageMetrics, compareIntervalMs = defaultCompareIntervalMs, logger } = options;
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
    if (performance.now() - comparedAtMs >= compareIntervalMs) {
      comparedAtMs = performance.now();
      await compareWithMonth(options, bucket.published, (entry, known) => {
        presentMonth = entry.month;
        if (!isUpdate(entry, known, presentMonth)) return;
        if (!pending.has(pendingKey(entry))) usageMetrics.quotaRepaired();
        hold(pending, entry, presentMonth);
      });
    }
    await publishPending();
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
    const id = entry.organization_id;
    if (isUpdate(entry, bucket.published.get(id), presentMonth)) {
      await publishOnce(client, quotaBucket.subjectPrefix + id, JSON.stringify(entry));
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

/** Follows the bucket. An entry that cannot be parsed is absent, so that it is overwritten. */
function followPublished({ connection, logger }: PublisherOptions, onCaughtUp: () => void) {
  const published = new Map<string, QuotaEntry>();
  const followed = followBucket({
    ...{ connection, bucket: quotaBucket, filter: everythingFilter, onCaughtUp, logger },
    onBegin: () => published.clear(),
    onEntry({ key, payload }) {
      const checked = checkQuotaEntry(parseJson(payload));
      if (checked.ok) published.set(key, checked.value);
      else published.delete(key);
    },
  });
  return { ...followed, published };
}

/**
 * Calls back for the current month of every organization, and adopts the published totals that are higher than those of
 * the database or missing in it.
 */
async function compareWithMonth(
  { sql, logger }: PublisherOptions,
  published: ReadonlyMap<string, QuotaEntry>,
  onEntry: (entry: QuotaEntry, known: QuotaEntry | undefined) => void,
): Promise<void> {
  const unmatched = new Map(published);
  for await (const page of readPresentMonth(sql))
    for (const entry of page) {
      const known = published.get(entry.organization_id);
      if (known === undefined || known.requests <= entry.requests)
        unmatched.delete(entry.organization_id);
      onEntry(entry, known);
    }
  const organizations = await adoptHigherMonths(sql, [...unmatched.values()]);
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
