import type { Sql } from "@halyard/postgres";

/**
 * Whether PostgreSQL answers, asked every second rather than at each probe. Management can do its
 * job when it does; without NATS it still takes changes, which are published when NATS is back.
 */
const askEveryMs = 1_000;

export function createDatabaseHealth(sql: Sql): { isUp: () => boolean; stop: () => Promise<void> } {
  let up = false;
  let asking = false;

  async function ask(): Promise<void> {
    if (asking) return;
    asking = true;
    up = await sql`select 1`.then(
      () => true,
      // That it is away is the answer; the queries that need it report why.
      () => false,
    );
    asking = false;
  }

  void ask();
  const timer = setInterval(() => void ask(), askEveryMs);
  return {
    isUp: () => up,
    stop: async () => clearInterval(timer),
  };
}
