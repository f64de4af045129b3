import { connectPostgres } from "@halyard/postgres";
import { pino } from "pino";
import type { Postgres } from "../system/backends.ts";

/** The number of connections that management opens. */
const maxConnections = 20;

/**
 * Measures single-row updates per second. No service that stores its changes in PostgreSQL can be faster.
 */
export async function measureBareUpdates(options: {
  postgres: Postgres;
  flagIds: readonly string[];
  writers: number;
  measureMs: number;
}): Promise<{ perSecond: number }> {
  const { flagIds } = options;
  const sql = connectPostgres({
    url: options.postgres.managementUrl,
    name: "bench",
    maxConnections,
    logger: pino({ level: "silent" }),
  });
  let next = 0;
  let updates = 0;
  let ending = false;
  async function write(): Promise<void> {
    while (!ending) {
      next += 1;
      const id = flagIds[next % flagIds.length] as string;
      await sql`update flags set updated_at = clock_timestamp() where id = ${id}`;
      updates += 1;
    }
  }
  const beganMs = performance.now();
  const writers = Array.from({ length: options.writers }, write);
  await new Promise((resolve) => setTimeout(resolve, options.measureMs));
  const perSecond = (updates / (performance.now() - beganMs)) * 1e3;
  ending = true;
  await Promise.all(writers);
  await sql.end();
  return { perSecond };
}
