import type { Sql } from "@halyard/postgres";
import { ConfigurationError } from "@halyard/service";
import { pause } from "@halyard/timing";

const checkIntervalMs = 500;

/**
 * Keeps management from working with a role that bypasses row-level security, because it would serve deleted
 * organizations, projects and environments. While PostgreSQL is unavailable or not migrated yet, the process starts,
 * and the check is repeated until it has a result.
 */
export async function requireRowSecurity(options: {
  sql: Sql;
  /** Receives the error when a check after the start finds such a role. */
  onBypassed: (error: ConfigurationError) => void;
}): Promise<{ stop(): Promise<void> }> {
  const { sql } = options;
  const stopping = new AbortController();

  /** Returns whether there is a result. */
  async function check(): Promise<boolean> {
    const bypasses = await findBypass(sql).catch(() => undefined);
    if (bypasses) throw bypassesRowSecurity();
    return bypasses !== undefined;
  }

  async function checkUntilDone(): Promise<void> {
    while ((await pause(checkIntervalMs, stopping.signal)) && !(await check()));
  }

  const checking = (await check()) ? undefined : checkUntilDone().catch(options.onBypassed);
  return {
    async stop() {
      stopping.abort();
      await checking;
    },
  };
}

/** Returns undefined before the migration that enables row-level security. */
async function findBypass(sql: Sql): Promise<boolean | undefined> {
  const [row] = await sql<{ bypasses: boolean }[]>`
    select not row_security_active(oid) as bypasses
    from pg_class
    where oid = to_regclass('management.projects') and relrowsecurity`;
  return row?.bypasses;
}

function bypassesRowSecurity(): ConfigurationError {
  return new ConfigurationError([
    "The role in POSTGRES_URL bypasses row-level security, so deleted projects would be visible.",
    "Use the role management_runtime; owners of the tables and superusers are not suitable.",
  ]);
}
