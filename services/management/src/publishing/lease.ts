import type { Sql, Transaction } from "@halyard/postgres";

/**
 * Leadership of the relay, as a lease in PostgreSQL. The lease expires, so a process that is suspended or disconnected
 * cannot hold it forever. A process may not notice that it was suspended, so its work is also fenced. The broker fences
 * its messages, and the row of the lease fences its records. The lease decides which process works, and the fences
 * decide which work counts.
 */
export type Lease = {
  /** Acquires or renews the lease. Returns false if another process holds it. */
  acquire(): Promise<boolean>;
  /**
   * Renews an unexpired lease. Returns false if the lease has expired, even if no process holds it now, because another
   * process may have held it in between.
   */
  renew(): Promise<boolean>;
  /** Returns whether this process holds the lease, by a clock that advances while the process is suspended. */
  isHeld(): boolean;
  /**
   * Runs a transaction as the leader. It locks the row of the lease, so that another process takes over either before
   * the transaction or after its commit. Throws a `LeadershipLostError` if the lease has expired.
   */
  recordAsLeader<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Releases the lease, so that another process does not have to wait for its expiry. */
  release(): Promise<void>;
};

/**
 * Duration of the lease: long enough to survive a garbage collection or a slow commit, short enough for a fast
 * failover.
 */
export const leaseMs = 3_000;
export const renewIntervalMs = 1_000;
/**
 * Time-out of an idle transaction. A process that is suspended in a transaction must not lock the lease for longer than
 * its duration.
 */
const recordingTimeoutMs = 2_000;
/**
 * Time-out of a whole transaction, which PostgreSQL supports since version 17. A process that is suspended while it
 * sends a statement counts neither as idle nor as executing, so no other time-out applies. The transactions of a leader
 * take milliseconds; the time-out leaves room for a slow disk.
 */
const transactionTimeoutMs = 5_000;

export function createLease(options: {
  sql: Sql;
  name: string;
  holder: string;
  /** Returns milliseconds of a clock that never goes backwards. */
  monotonicMs: () => number;
  durationMs?: number;
}): Lease {
  const { sql, name, holder, monotonicMs, durationMs = leaseMs } = options;
  let heldUntilMs = Number.NEGATIVE_INFINITY;

  /** Measures the lease from before the statement is sent, so that it never appears longer than it is. */
  async function updateHeld(claim: () => Promise<readonly unknown[]>): Promise<boolean> {
    const sentAtMs = monotonicMs();
    const rows = await claim();
    heldUntilMs = rows.length > 0 ? sentAtMs + durationMs : Number.NEGATIVE_INFINITY;
    return rows.length > 0;
  }

  return {
    acquire: () =>
      updateHeld(
        () => sql`
        insert into leases as lease (name, holder, expires_at)
        values (${name}, ${holder}, clock_timestamp() + ${durationMs} * interval '1 millisecond')
        on conflict (name) do update
          set holder = excluded.holder, expires_at = excluded.expires_at
          where lease.holder = excluded.holder or lease.expires_at < clock_timestamp()
        returning 1`,
      ),
    renew: () =>
      updateHeld(
        () => sql`
        update leases
        set expires_at = clock_timestamp() + ${durationMs} * interval '1 millisecond'
        where name = ${name} and holder = ${holder} and expires_at > clock_timestamp()
        returning 1`,
      ),
    isHeld: () => monotonicMs() < heldUntilMs,
    recordAsLeader: async (work) =>
      sql.begin(async (tx) => {
        const rows = await tx`
          select set_config('idle_in_transaction_session_timeout', ${String(recordingTimeoutMs)}, true),
                 -- A cached plan for an almost empty outbox would scan all of its rows until the next ANALYZE.
                 set_config('plan_cache_mode', 'force_custom_plan', true),
                 case when current_setting('transaction_timeout', true) is not null then
                   set_config('transaction_timeout', ${String(transactionTimeoutMs)}, true)
                 end
          from leases
          where name = ${name} and holder = ${holder} and expires_at > clock_timestamp()
          for share`;
        if (rows.length === 0) throw new LeadershipLostError("the lease has ended");
        return work(tx);
      }) as ReturnType<typeof work>,
    async release() {
      heldUntilMs = Number.NEGATIVE_INFINITY;
      await sql`
        update leases set expires_at = clock_timestamp()
        where name = ${name} and holder = ${holder}`;
    },
  };
}

/** The lease has expired, or another process holds it. This process must not publish. */
export class LeadershipLostError extends Error {
  override name = "LeadershipLostError";
  readonly hasSafeMessage = true;
}
