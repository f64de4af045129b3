import type postgres from "postgres";

/** The parts of the database that the statements of the services depend on. */
export type DatabaseSchema = {
  columns: Record<string, Column>;
  /** Privileges of the runtime roles, on whole tables and on single columns. */
  grants: string[];
  /** Keys, checks and unique indexes. */
  rules: Record<string, Rule>;
  functions: string[];
};

export type Column = { type: string; nullable: boolean; hasDefault: boolean };
type Rule = { table: string; columns: string[]; definition: string; isUnique: boolean };

const schemas = ["management", "scheduler", "webhooks", "usage"];
/** The table in which the migrations record themselves. */
const bookkeeping = "migrations";

export async function readDatabaseSchema(sql: postgres.Sql): Promise<DatabaseSchema> {
  const columns = await sql<({ name: string } & Column)[]>`
    select n.nspname || '.' || t.relname || '.' || a.attname as name,
      format_type(a.atttypid, a.atttypmod) as type,
      not a.attnotnull as nullable,
      a.atthasdef or a.attidentity <> '' as "hasDefault"
    from pg_attribute as a
    join pg_class as t on t.oid = a.attrelid
    join pg_namespace as n on n.oid = t.relnamespace
    where n.nspname = any(${schemas}) and t.relkind in ('r', 'p') and t.relname <> ${bookkeeping}
      and a.attnum > 0 and not a.attisdropped
    order by name`;
  const rules = await sql<({ name: string } & Rule)[]>`
    select n.nspname || '.' || t.relname || '.' || c.conname as name,
      n.nspname || '.' || t.relname as table,
      array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = t.oid and a.attnum = any(c.conkey) order by a.attname
      ) as columns,
      pg_get_constraintdef(c.oid) as definition,
      c.contype in ('p', 'u') as "isUnique"
    from pg_constraint as c
    join pg_class as t on t.oid = c.conrelid
    join pg_namespace as n on n.oid = t.relnamespace
    where n.nspname = any(${schemas}) and t.relname <> ${bookkeeping} and c.contype <> 'n'
    union all
    select n.nspname || '.' || t.relname || '.' || o.relname,
      n.nspname || '.' || t.relname,
      array(
        select a.attname::text from pg_attribute as a
        where a.attrelid = t.oid and a.attnum = any(i.indkey::int2[]) order by a.attname
      ),
      pg_get_indexdef(i.indexrelid),
      true
    from pg_index as i
    join pg_class as o on o.oid = i.indexrelid
    join pg_class as t on t.oid = i.indrelid
    join pg_namespace as n on n.oid = t.relnamespace
    where n.nspname = any(${schemas}) and t.relname <> ${bookkeeping} and i.indisunique
      and not exists (select from pg_constraint as c where c.conindid = i.indexrelid)
    order by name`;
  return {
    columns: byName(columns),
    grants: await readGrants(sql),
    rules: byName(rules),
    functions: await readFunctions(sql),
  };
}

async function readGrants(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    with tables as (
      select t.oid, n.nspname || '.' || t.relname as name, n.nspname || '_service' as role
      from pg_class as t join pg_namespace as n on n.oid = t.relnamespace
      where n.nspname = any(${schemas}) and t.relkind in ('r', 'p') and t.relname <> ${bookkeeping}
    )
    select role || ' ' || privilege || ' ' || name as name
    from tables, unnest(array['select', 'insert', 'update', 'delete']) as privilege
    where has_table_privilege(role, oid, privilege)
    union all
    select role || ' ' || privilege || ' ' || name || '.' || a.attname
    from tables join pg_attribute as a on a.attrelid = oid and a.attnum > 0 and not a.attisdropped,
      unnest(array['select', 'insert', 'update']) as privilege
    where has_column_privilege(role, oid, a.attnum, privilege)
    order by name`;
  return rows.map(({ name }) => name);
}

async function readFunctions(sql: postgres.Sql): Promise<string[]> {
  const rows = await sql<{ name: string }[]>`
    select n.nspname || '.' || p.proname || '(' || pg_get_function_identity_arguments(p.oid)
      || ') returns ' || pg_get_function_result(p.oid) as name
    from pg_proc as p join pg_namespace as n on n.oid = p.pronamespace
    where n.nspname = any(${schemas})
    order by name`;
  return rows.map(({ name }) => name);
}

function byName<T extends { name: string }>(rows: readonly T[]): Record<string, Omit<T, "name">> {
  return Object.fromEntries(rows.map(({ name, ...rest }) => [name, rest]));
}
