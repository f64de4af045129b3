import type { Sql } from "@halyard/postgres";
import { ConfigurationError } from "@halyard/service";
import { pause } from "@halyard/timing";

const checkIntervalMs = 500;

/**
 * Throws if the role of management bypasses row-level security, because management would then serve deleted
 * organizations, projects and environments. If PostgreSQL is unavailable or not migrated yet, the process starts and
 * repeats the check until it has a result.
 */
export async function requireRowSecurity(options: {
  sql: Sql;
  /** Called with the error if a later check finds that the role bypasses row-level security. */
  onBypassed: (error: ConfigurationError) => void;
}): Promise<{ stop(): Promise<void> }> {
  const { sql } = options;
  const stopping = new AbortController();

  /** Returns whether the check had a result. */
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

/** Returns whether the role bypasses row-level security, or undefined if the migration that enables it is missing. */
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
    "Use the role management_service; owners of the tables and superusers are not suitable.",
  ]);
}
