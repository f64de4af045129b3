-- Up Migration

-- Renaming and deletion of organizations, projects, environments and users.
--
-- A deletion marks the organization, its projects and their environments in one transaction. Row-level security hides
-- marked rows from the runtime role, also in the statements of replicas of an earlier release. So nothing below them
-- can be read, changed or published, and no statement can forget to check it. The owner of the tables and superusers
-- see all rows. Batches remove the rows below; the marked rows stay, because the audit log refers to them.

alter table organizations
  add column deleted_at timestamptz,
  -- Nothing is left below the deleted row.
  add column emptied_at timestamptz;
alter table projects
  add column version bigint not null default 1,
  -- Null: never changed.
  add column updated_at timestamptz,
  add column deleted_at timestamptz,
  add column emptied_at timestamptz;
alter table environments
  add column version bigint not null default 1,
  add column updated_at timestamptz,
  add column deleted_at timestamptz,
  add column emptied_at timestamptz;
-- Deleted users stay, because revoked keys and schedules refer to them.
alter table users
  add column deleted_at timestamptz,
  -- The e-mail address is being removed from the audit log; entries up to this id have been visited.
  add column erased_up_to uuid;

-- Deleted rows below which something may be left.
create index organizations_to_empty on organizations (deleted_at)
  where deleted_at is not null and emptied_at is null;
create index projects_to_empty on projects (deleted_at)
  where deleted_at is not null and emptied_at is null;
create index environments_to_empty on environments (deleted_at)
  where deleted_at is not null and emptied_at is null;
create index deleted_organizations on organizations (deleted_at) where deleted_at is not null;
create index deleted_projects on projects (deleted_at) where deleted_at is not null;
create index deleted_environments on environments (deleted_at) where deleted_at is not null;
create index users_by_email on users (organization_id, lower(email)) where deleted_at is null;
create index api_keys_by_user on api_keys (user_id);
create index users_to_erase on users (id) where erased_up_to is not null;

grant update (version, updated_at) on projects to management_service;
grant update (name, version, updated_at) on environments to management_service;
grant update (name, email, deleted_at, erased_up_to) on users to management_service;
-- Until now only the deletion of a flag removed its states.
grant delete on flag_states to management_service;

alter table organizations enable row level security;
alter table projects enable row level security;
alter table environments enable row level security;
create policy not_deleted on organizations using (deleted_at is null) with check (true);
create policy not_deleted on projects using (deleted_at is null) with check (true);
create policy not_deleted on environments using (deleted_at is null) with check (true);

-- Marks an organization, project or environment with everything down to the environments. Frees the names. Returns
-- the keys and versions of the entries whose tombstones the caller publishes.
create function mark_deleted(subject uuid, instant timestamptz)
returns table (entry_key text, next_version bigint)
language sql security definer
begin atomic
  with marked_organizations as (
    update organizations
    set name = id::text, version = version + 1, updated_at = instant, deleted_at = instant
    where id = subject and deleted_at is null
    returning id, version
  ), marked_projects as (
    update projects
    set name = id::text, version = version + 1, updated_at = instant, deleted_at = instant
    where deleted_at is null and id = any (array(
      select id from projects where organization_id = (select id from marked_organizations)
      union all
      select subject
    ))
    returning id, organization_id, version
  ), marked_environments as (
    update environments
    set name = id::text, version = version + 1, updated_at = instant, deleted_at = instant
    where deleted_at is null and id = any (array(
      select environment.id
      from environments as environment
      join marked_projects as project on project.id = environment.project_id
      union all
      select subject
    ))
    returning id, project_id, version
  )
  select id || '.organization', version from marked_organizations
  union all
  select organization_id || '.project.' || id, version from marked_projects
  union all
  select project.organization_id || '.environment.' || environment.id, environment.version
  from marked_environments as environment
  join projects as project on project.id = environment.project_id;
end;

-- The tombstones of what was deleted. They are part of every snapshot until nothing is left below them, and for at
-- least as long as other tombstones, so that each service can remove its own rows. Returns a page in the order of keys;
-- without `at_most`, all of them.
create function deleted_places(least_days integer, after_key text, at_most integer)
returns table (entry_key text, deleted_version bigint, deletion timestamptz)
language sql stable security definer
begin atomic
  select place.entry_key, place.version, place.deleted_at
  from (
    select id || '.organization' as entry_key, version, deleted_at
    from organizations
    where deleted_at is not null
      and (emptied_at is null or deleted_at > now() - make_interval(days => least_days))
    union all
    select organization_id || '.project.' || id, version, deleted_at
    from projects
    where deleted_at is not null
      and (emptied_at is null or deleted_at > now() - make_interval(days => least_days))
    union all
    select project.organization_id || '.environment.' || environment.id, environment.version,
      environment.deleted_at
    from environments as environment
    join projects as project on project.id = environment.project_id
    where environment.deleted_at is not null
      and (environment.emptied_at is null
        or environment.deleted_at > now() - make_interval(days => least_days))
  ) as place
  where place.entry_key collate "C" > after_key
  order by place.entry_key collate "C"
  limit at_most;
end;

-- The organization of a project, also of a deleted one.
create function organization_of_project(project uuid) returns uuid
language sql stable security definer
return (select organization_id from projects where id = project);

create function has_rows_to_remove() returns boolean
language sql stable security definer
return exists (select from environments where deleted_at is not null and emptied_at is null)
  or exists (select from projects where deleted_at is not null and emptied_at is null)
  or exists (select from organizations where deleted_at is not null and emptied_at is null)
  or exists (select from users where deleted_at is not null and erased_up_to is not null);

-- Locks the deleted environment that has waited longest for the removal of its rows. A transaction that began before the
-- deletion may still add rows below it, for which it locks a flag first. The lock here does not conflict with it,
-- because the caller locks flags later.
create function claim_deleted_environment()
returns table (environment_id uuid, project_id uuid, organization_id uuid)
language sql security definer
begin atomic
  select environment.id, project.id, project.organization_id
  from environments as environment
  join projects as project on project.id = environment.project_id
  where environment.deleted_at is not null and environment.emptied_at is null
  order by environment.deleted_at, environment.id
  limit 1
  for no key update of environment skip locked;
end;

-- Ends the removal of deleted environments that are empty, at most this number. Returns the number. Environments that a
-- transaction adds rows to are locked, and left out.
create function finish_empty_environments(at_most integer) returns integer
language plpgsql security definer
as $$
declare
  locked uuid[];
  finished uuid[];
begin
  locked := array(
    select environment.id
    from environments as environment
    where environment.deleted_at is not null and environment.emptied_at is null
      -- Without statistics, PostgreSQL would join environments with all keys and states.
      and (select true from api_keys where environment_id = environment.id limit 1) is null
      and (select true from flag_states where environment_id = environment.id limit 1) is null
      and (select true from environment_fills where environment_id = environment.id limit 1) is null
    order by environment.deleted_at, environment.id
    limit at_most
    for update skip locked
  );
  -- A statement of its own, because rows may have been added between the first one's start and its lock.
  with emptied as (
    update environments as environment
    set emptied_at = now()
    where id = any (locked)
      and not exists (select from api_keys where environment_id = environment.id)
      and not exists (select from flag_states where environment_id = environment.id)
      and not exists (select from environment_fills where environment_id = environment.id)
    returning id
  )
  select array_agg(id) into finished from emptied;
  delete from environments_last_seen where environment_id = any (finished);
  return coalesce(cardinality(finished), 0);
end
$$;

-- Removes API keys of a deleted environment. The caller publishes their deletion.
create function remove_keys_of_deleted(environment uuid, at_most integer)
returns table (key_id text, next_version bigint)
language sql security definer
begin atomic
  with gone as (
    select key.id
    from api_keys as key
    join environments as place on place.id = key.environment_id
    where place.id = environment and place.deleted_at is not null
    order by key.id
    limit at_most
    for update of key
  ), unseen as (
    delete from keys_last_seen as seen where seen.key_id = any (array(select id from gone))
  )
  delete from api_keys as key
  where key.id = any (array(select id from gone))
  returning key.id, key.version + 1;
end;

-- Ends the removal of a deleted environment. Waits for transactions that add rows below it, and rejects if rows are left.
create function finish_deleted_environment(environment uuid) returns void
language plpgsql security definer
as $$
begin
  perform from environments where id = environment for update;
  if exists (select from api_keys where environment_id = environment)
    or exists (select from flag_states where environment_id = environment) then
    raise exception 'rows are left in the deleted environment %', environment;
  end if;
  delete from environments_last_seen where environment_id = environment;
  update environments set emptied_at = now() where id = environment and deleted_at is not null;
end
$$;

-- Removes flags of deleted projects and users of deleted organizations whose environments are empty, at most this
-- number. Returns whether anything is left to do.
create function remove_rest_of_deleted(at_most integer) returns boolean
language plpgsql security definer
as $$
declare
  subject uuid;
  removed integer;
begin
  select id into subject
  from projects as project
  where project.deleted_at is not null and project.emptied_at is null
    and not exists (
      select from environments as environment
      where environment.project_id = project.id and environment.emptied_at is null
    )
  order by project.deleted_at, project.id
  limit 1
  for update skip locked;
  if found then
    with gone as (
      select id from flags where project_id = subject order by id limit at_most for update
    ), unseen as (
      delete from flags_last_seen where flag_id = any (array(select id from gone))
    )
    delete from flags where id = any (array(select id from gone));
    get diagnostics removed = row_count;
    if removed < at_most then
      update projects set emptied_at = now() where id = subject;
    end if;
    return true;
  end if;
  select id into subject
  from organizations as organization
  where organization.deleted_at is not null and organization.emptied_at is null
    and not exists (
      select from projects as project
      where project.organization_id = organization.id and project.emptied_at is null
    )
    -- The rows of users to erase are the work that is left for erase_from_audit_log.
    and not exists (
      select from users
      where users.organization_id = organization.id and users.erased_up_to is not null
    )
  order by organization.deleted_at, organization.id
  limit 1
  for update skip locked;
  if not found then
    return false;
  end if;
  delete from users where id = any (array(
    select id from users
    where organization_id = subject and erased_up_to is null
    order by id
    limit at_most
  ))
    -- Again, because a user's deletion with an erasure may have been committed while this statement waited for the row.
    and erased_up_to is null;
  if not exists (select from users where organization_id = subject) then
    update organizations set emptied_at = now() where id = subject;
  end if;
  return true;
end
$$;

-- Removes the e-mail address of the next deleted user from a page of the audit log: from entries that the user made,
-- and from entries about the user. Transactions that read the address lock the user, so the deletion waits for their
-- entries, and no later entry contains the address. Returns whether anything is left to do.
create function erase_from_audit_log(at_most integer) returns boolean
language plpgsql security definer
as $$
declare
  subject users;
  page uuid[];
begin
  select * into subject from users
  where deleted_at is not null and erased_up_to is not null
  order by id
  limit 1
  for update skip locked;
  if not found then
    return false;
  end if;
  page := array(
    select id from changes where id > subject.erased_up_to order by id limit at_most
  );
  update changes set actor_email = 'erased'
  where id = any (page) and actor_id = subject.id;
  update changes
  set state_before = state_before || '{"email": "erased", "name": null}',
    state_after = state_after || '{"email": "erased", "name": null}'
  where id = any (page) and user_id = subject.id;
  update users
  set erased_up_to = case when cardinality(page) = at_most then page[at_most] end
  where id = subject.id;
  return true;
end
$$;

-- As in 0010: a temporary table must not be used in place of the schema's own.
do $$
declare
  name text;
begin
  foreach name in array array[
    'mark_deleted(uuid, timestamptz)',
    'deleted_places(integer, text, integer)',
    'organization_of_project(uuid)',
    'has_rows_to_remove()',
    'claim_deleted_environment()',
    'finish_empty_environments(integer)',
    'remove_keys_of_deleted(uuid, integer)',
    'finish_deleted_environment(uuid)',
    'remove_rest_of_deleted(integer)',
    'erase_from_audit_log(integer)'
  ] loop
    execute format('alter function %s set search_path = %I, pg_temp', name, current_schema);
    execute format('revoke execute on function %s from public', name);
    execute format('grant execute on function %s to management_service', name);
  end loop;
end
$$;
