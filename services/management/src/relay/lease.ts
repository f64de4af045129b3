import type { Sql, Transaction } from "@halyard/postgres";

/**
 * Leadership of the relay, as a lease in PostgreSQL. It ends by itself, so a process that was stopped
 * or cut off cannot hold it; and because a process may not notice that it was stopped, what it does
 * is fenced besides: what it publishes by the broker, what it records by the lease's own row. The
 * lease decides who works, the fences what counts.
 */
export type Lease = {
  /** Takes or renews the lease. False while another process holds it. */
  acquire(): Promise<boolean>;
  /**
   * Renews a lease that has not ended. One that has ended might have been another's in between, so it
   * is lost even if nobody holds it now.
   */
  renew(): Promise<boolean>;
  /** Whether the lease is still ours, by a clock that goes on while the process is stopped. */
  isHeld(): boolean;
  /**
   * Records what a leader has learnt. The transaction holds on to the lease's row, so that another
   * process takes over before it or after its commit; when the lease has ended it changes nothing.
   */
  recordAsLeader<T>(work: (tx: Transaction) => Promise<T>): Promise<T>;
  /** Gives the lease up, so that another process need not wait for its end. */
  release(): Promise<void>;
};

/** Long enough to outlast a pause for garbage or a slow commit, short enough to fail over quickly. */
export const leaseMs = 3_000;
export const renewIntervalMs = 1_000;
/** A process that is stopped while it records must not hold the lease's row for longer than the lease. */
const recordingTimeoutMs = 2_000;
/**
 * One that is stopped between the messages of one statement counts neither as idle nor as executing, and
 * no other bound would ever end it. What a leader records takes milliseconds; this leaves room for a disk
 * that is slow. PostgreSQL has the setting since version 17.
 */
const transactionTimeoutMs = 5_000;

export function createLease(options: {
  sql: Sql;
  name: string;
  holder: string;
  /** Milliseconds that never go back. */
  monotonicMs: () => number;
}): Lease {
  const { sql, name, holder, monotonicMs } = options;
  let heldUntilMs = Number.NEGATIVE_INFINITY;

  /** Counted from before the question was asked, so that we never think it longer than it is. */
  async function held(ask: () => Promise<readonly unknown[]>): Promise<boolean> {
    const askedAtMs = monotonicMs();
    const rows = await ask();
    heldUntilMs = rows.length > 0 ? askedAtMs + leaseMs : Number.NEGATIVE_INFINITY;
    return rows.length > 0;
  }

  return {
    acquire: () =>
      held(
        () => sql`
        insert into leases as lease (name, holder, expires_at)
        values (${name}, ${holder}, clock_timestamp() + ${leaseMs} * interval '1 millisecond')
        on conflict (name) do update
          set holder = excluded.holder, expires_at = excluded.expires_at
          where lease.holder = excluded.holder or lease.expires_at < clock_timestamp()
        returning 1`,
      ),
    renew: () =>
      held(
        () => sql`
        update leases
        set expires_at = clock_timestamp() + ${leaseMs} * interval '1 millisecond'
        where name = ${name} and holder = ${holder} and expires_at > clock_timestamp()
        returning 1`,
      ),
    isHeld: () => monotonicMs() < heldUntilMs,
    recordAsLeader: async (work) =>
      sql.begin(async (tx) => {
        const rows = await tx`
          select set_config('idle_in_transaction_session_timeout', ${String(recordingTimeoutMs)}, true),
                 -- A plan that was made for an almost empty outbox would scan all of it, until the next ANALYZE.
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

/** Another process leads, or our lease has run out: what we were about to publish is not ours to. */
export class LeadershipLostError extends Error {
  override name = "LeadershipLostError";
  readonly hasSafeMessage = true;
}
