import type pg from "pg";

/**
 * Moves the rights in a schema from the runtime role of release 0.1 to the present one. A process of that release that
 * was not stopped can no longer read or write, and the owner's later grants do not concern it. Without that role, or
 * after the rights were moved, this does nothing.
 */
export async function moveRightsOfFormerRole(client: pg.Client, schema: string): Promise<void> {
  const { rows } = await client.query<{ statements: string }>(rightsToMove, [
    schema,
    `${schema}_runtime`,
    `${schema}_service`,
  ]);
  // Several statements in one query are one transaction.
  if (rows.length > 0) await client.query(rows.map(({ statements }) => statements).join(";\n"));
}

const rightsToMove = `
  with rights as (
    select acl.grantee, format('%s on schema %I', acl.privilege_type, namespace.nspname) as content
    from pg_namespace as namespace, aclexplode(namespace.nspacl) as acl
    where namespace.nspname = $1
    union all
    select acl.grantee, format('%s on table %s', acl.privilege_type, class.oid::regclass)
    from pg_class as class, aclexplode(class.relacl) as acl
    where class.relnamespace = to_regnamespace($1) and class.relkind in ('r', 'p')
    union all
    select acl.grantee,
      format('%s (%I) on table %s', acl.privilege_type, part.attname, class.oid::regclass)
    from pg_attribute as part
    join pg_class as class on class.oid = part.attrelid, aclexplode(part.attacl) as acl
    where class.relnamespace = to_regnamespace($1) and not part.attisdropped
    union all
    select acl.grantee, format('%s on function %s', acl.privilege_type, routine.oid::regprocedure)
    from pg_proc as routine, aclexplode(routine.proacl) as acl
    where routine.pronamespace = to_regnamespace($1)
  )
  select format('grant %1$s to %2$I; revoke %1$s from %3$I', content, $3::text, $2::text) as statements
  from rights
  where grantee = to_regrole($2)`;
