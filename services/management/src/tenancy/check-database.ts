import { ConfigurationError } from "@halyard/configuration";
import type { Sql } from "@halyard/postgres";
import { pause } from "@halyard/timing";
import { type PlanOptions, preparePlans } from "./plans.ts";

const checkIntervalMs = 500;

/**
 * Checks the database against the configuration, and throws if they do not fit. If PostgreSQL is unavailable or not
 * migrated yet, the process starts and repeats the check until it has a result.
 */
export async function checkDatabase(
  sql: Sql,
  plans: PlanOptions,
  /** Called with the error if a later check throws. */
  onProblem: (error: ConfigurationError) => void,
): Promise<{ stop(): Promise<void> }> {
  const stopping = new AbortController();

  /** Returns whether the check had a result. */
  async function check(): Promise<boolean> {
    try {
      await requireRowSecurity(sql);
      await preparePlans(sql, plans);
      return true;
    } catch (error) {
      if (error instanceof ConfigurationError) throw error;
      return false;
    }
  }

  async function checkUntilDone(): Promise<void> {
    while ((await pause(checkIntervalMs, stopping.signal)) && !(await check()));
  }

  const checking = (await check()) ? undefined : checkUntilDone().catch(onProblem);
  return {
    async stop() {
      stopping.abort();
      await checking;
    },
  };
}

/**
 * Throws if the role of management bypasses row-level security, because management would then serve deleted
 * organizations, projects and environments. Passes before the migration that enables row-level security.
 */
async function requireRowSecurity(sql: Sql): Promise<void> {
  const [row] = await sql<{ bypasses: boolean }[]>`
    select not row_security_active(oid) as bypasses
    from pg_class
    where oid = to_regclass('management.projects') and relrowsecurity`;
  if (row?.bypasses)
    throw new ConfigurationError([
      "The role in POSTGRES_URL bypasses row-level security, so deleted projects would be visible.",
      "Use the role management_service; owners of the tables and superusers are not suitable.",
    ]);
}
