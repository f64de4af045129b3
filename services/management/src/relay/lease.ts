import type { Sql } from "@halyard/postgres";

/**
 * Leadership of the relay, as a lease in PostgreSQL. It ends by itself, so a process that was stopped
 * or cut off cannot hold it; and because a process may not notice that it was stopped, what it
 * publishes is fenced by the broker besides. The lease decides who works, the fence what counts.
 */
export type Lease = {
  /** Takes or renews the lease. False while another process holds it. */
  acquire(): Promise<boolean>;
  /** Whether the lease is still ours, by a clock that goes on while the process is stopped. */
  isHeld(): boolean;
  /** Gives the lease up, so that another process need not wait for its end. */
  release(): Promise<void>;
};

/** Long enough to outlast a pause for garbage or a slow commit, short enough to fail over quickly. */
export const leaseMs = 3_000;
export const renewEveryMs = 1_000;

export function createLease(options: {
  sql: Sql;
  name: string;
  holder: string;
  /** Milliseconds that never go back. */
  monotonicMs: () => number;
}): Lease {
  const { sql, name, holder, monotonicMs } = options;
  let heldUntilMs = Number.NEGATIVE_INFINITY;

  return {
    async acquire() {
      const askedAtMs = monotonicMs();
      const rows = await sql`
        insert into leases as lease (name, holder, expires_at)
        values (${name}, ${holder}, clock_timestamp() + ${leaseMs} * interval '1 millisecond')
        on conflict (name) do update
          set holder = excluded.holder, expires_at = excluded.expires_at
          where lease.holder = excluded.holder or lease.expires_at < clock_timestamp()
        returning 1`;
      // Counted from before the question was asked, so that we never think it longer than it is.
      heldUntilMs = rows.length > 0 ? askedAtMs + leaseMs : Number.NEGATIVE_INFINITY;
      return rows.length > 0;
    },
    isHeld: () => monotonicMs() < heldUntilMs,
    async release() {
      heldUntilMs = Number.NEGATIVE_INFINITY;
      await sql`
        update leases set expires_at = clock_timestamp()
        where name = ${name} and holder = ${holder}`;
    },
  };
}
