import { doctorRole, withClient } from "@halyard/postgres";
import type pg from "pg";
import { clockFinding, type Finding, findingsOf, judged, ok, problem, warning } from "./finding.ts";
import { newestMigrations } from "./newest-migrations.ts";

/** Schemas of the services, with the newest migration of this release. */
const expected = Object.entries(newestMigrations);

const oldestVersion = 15;
const soonDays = 14;
const migrateAdvice = "Run npm run setup, then npm run migrate, or the jobs of the same names.";

/** Checks PostgreSQL with the doctor's role, which may read little. */
export function checkPostgres(url: string): Promise<Finding[]> {
  const advice =
    "Check POSTGRES_URL and that the server runs. npm run setup makes the role of the doctor and sets its password.";
  return findingsOf("postgresql", advice, () =>
    withClient(url, async (client) => [
      ...(await checkServer(client)),
      await checkRoles(client),
      await checkGrants(client),
      ...(await checkMigrations(client)),
      await checkKeys(client),
    ]),
  );
}

async function checkServer(client: pg.Client): Promise<Finding[]> {
  const askedAt = Date.now();
  const { rows } = await client.query<{
    version: number;
    now: Date;
    used: number;
    max: number;
    size: string;
  }>(`select current_setting('server_version_num')::int / 10000 as version, clock_timestamp() as now,
    (select count(*)::int from pg_stat_activity) as used, current_setting('max_connections')::int as max,
    pg_size_pretty(pg_database_size(current_database())) as size`);
  const [row] = rows;
  if (row === undefined) throw new Error("PostgreSQL returned no row");
  const { version, now, used, max, size } = row;
  const middle = (askedAt + Date.now()) / 2;
  const text = `PostgreSQL ${version} answers, the database has ${size}`;
  const connections = `${used} of ${max} connections are used`;
  return [
    version >= oldestVersion
      ? ok("postgresql", text)
      : problem("postgresql", text, `Upgrade PostgreSQL to ${oldestVersion} or later.`),
    used <= 0.8 * max
      ? ok("postgresql", connections)
      : warning("postgresql", connections, "Raise max_connections, or run fewer replicas."),
    clockFinding("PostgreSQL", now.getTime() - middle),
  ];
}

/** Roles of services may log in, and nothing else. */
async function checkRoles(client: pg.Client): Promise<Finding> {
  const names = expected.flatMap(([schema]) => [`${schema}_owner`, `${schema}_service`]);
  const { rows } = await client.query<{ name: string; fault: string | null }>(
    `select name, case
        when rolname is null then 'does not exist'
        when not rolcanlogin then 'may not log in'
        when rolsuper or rolcreaterole or rolcreatedb or rolreplication or rolbypassrls then 'has more rights than it needs'
        when name like '%\\_service' and pg_has_role(name, replace(name, '_service', '_owner'), 'member') then 'is a member of the owner'
      end as fault
      from unnest($1::text[]) name left join pg_roles on rolname = name`,
    [[...names, doctorRole]],
  );
  const faults = rows.flatMap(({ name, fault }) => (fault === null ? [] : `${name} ${fault}`));
  const advice = "Run npm run setup. Take other attributes away with ALTER ROLE.";
  return judged("roles", `${rows.length} roles have no more rights than they need`, faults, advice);
}

/** A service may use its own schema and no other. */
async function checkGrants(client: pg.Client): Promise<Finding> {
  const { rows } = await client.query<{ role: string; schema: string; may: boolean }>(
    `select roles.rolname as role, nspname as schema, has_schema_privilege(roles.oid, pg_namespace.oid, 'usage') as may
      from pg_namespace, pg_roles roles
      where nspname = any($1) and rolname = any($2)`,
    [expected.map(([schema]) => schema), expected.map(([schema]) => `${schema}_service`)],
  );
  const faults = rows.flatMap(({ role, schema, may }) => {
    const should = role === `${schema}_service`;
    if (may === should) return [];
    return [`${role} may ${should ? "not " : ""}use the schema ${schema}`];
  });
  const text = "each service may use its own schema and no other";
  return judged("grants", text, faults, "Run npm run setup, and revoke what you have granted.");
}

async function checkMigrations(client: pg.Client): Promise<Finding[]> {
  const findings: Finding[] = [];
  for (const [schema, newest] of expected) {
    const table = `${schema}.migrations`;
    const { rows: found } = await client.query<{ may: boolean | null }>(
      "select has_table_privilege(to_regclass($1), 'select') as may",
      [table],
    );
    if (found[0]?.may !== true) {
      const text = `${schema}: the applied migrations cannot be read`;
      findings.push(problem("migrations", text, migrateAdvice));
      continue;
    }
    const { rows } = await client.query<{ name: string }>(
      `select name from ${table} order by name desc limit 1`,
    );
    findings.push(judgeMigration(schema, rows[0]?.name, newest));
  }
  return findings;
}

/** Compares the newest applied migration with the newest of this release. */
export function judgeMigration(
  schema: string,
  applied: string | undefined,
  newest: string,
): Finding {
  const text = `${schema}: the newest migration is ${applied ?? "none"}`;
  if (applied === newest) return ok("migrations", text);
  if (applied === undefined || applied < newest)
    return problem("migrations", `${text}, this release has ${newest}`, migrateAdvice);
  const advice =
    "Run the doctor of the release that made the migration. A rolling upgrade looks like this.";
  return warning("migrations", `${text}, which this release does not know`, advice);
}

/** Keys that end within two weeks. Without an end, a key never stops an application. */
async function checkKeys(client: pg.Client): Promise<Finding> {
  const { rows: may } = await client.query<{ may: boolean | null }>(
    "select has_column_privilege(to_regclass('management.api_keys'), 'expires_at', 'select') as may",
  );
  if (may[0]?.may !== true)
    return problem("keys", "the ends of keys cannot be read", migrateAdvice);
  const { rows } = await client.query<{ id: string; name: string; expires_at: Date }>(
    `select id, name, expires_at from management.api_keys
      where revoked_at is null and expires_at > now() and expires_at < now() + make_interval(days => $1)
      order by expires_at limit 5`,
    [soonDays],
  );
  if (rows.length === 0) return ok("keys", `no key ends within ${soonDays} days`);
  const listed = rows.map(
    ({ id, name, expires_at: end }) => `${name} (${id}) on ${end.toISOString()}`,
  );
  const text = `keys end within ${soonDays} days, the first of them: ${listed.join(", ")}`;
  return warning("keys", text, "Rotate them in the dashboard, and give applications the new ones.");
}
