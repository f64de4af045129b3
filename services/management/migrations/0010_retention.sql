-- Up Migration

-- Retention of the audit log, the history and ended keys. Nothing is removed unless the operator sets a
-- period. The runtime role can neither change nor delete these rows, so removal is done by functions that
-- run with the owner's rights. They keep the last 30 days, whatever period they are given.
--
-- History and audit log get no index for it. Ids are of version 7, which begins with the time in milliseconds, so the
-- primary keys find old entries. A row is old when both its id and its `changed_at` are before the cutoff.
--
-- The runtime role can insert rows with any id and `changed_at`. Therefore the age of one row never justifies
-- the removal of another: both functions check the age of every row that they remove.

-- One row. The removals of all replicas lock it, so that one of them works at a time.
create table audit_retention (
  only_row boolean primary key default true check (only_row),
  -- No entry of the audit log that is younger was removed.
  removed_before timestamptz not null,
  -- Removal has visited the entries of the history up to this id.
  visited_up_to uuid not null
);
insert into audit_retention (removed_before, visited_up_to)
values ('-infinity', '00000000-0000-0000-0000-000000000000');

-- Where chains begin whose oldest entries were removed. Verification requires that the oldest remaining
-- entry names this hash.
create table removed_history (
  flag_id uuid not null,
  environment_id uuid not null,
  -- The hash of the newest removed entry.
  hash bytea not null,
  -- How many were removed.
  entries bigint not null,
  primary key (flag_id, environment_id)
);

grant select on audit_retention, removed_history to management_service;

create function retention_cutoff(kept_days integer) returns timestamptz
language sql stable
return now() - make_interval(days => greatest(kept_days, 30));

-- The least id of version 7 of an instant.
create function first_id_at(instant timestamptz) returns uuid
language sql stable
return (lpad(to_hex(floor(extract(epoch from instant) * 1000)::bigint), 12, '0') || repeat('0', 20))::uuid;

-- `offset 0` and `any (array())` keep plans to index scans, whatever number of rows PostgreSQL expects.

-- Visits entries in the order of their ids, each once, and removes those before them in the same chain, but
-- for one. So each chain keeps its entries that are younger than the period and two older ones: the state at
-- the beginning of the period, and the state that a rollback would restore. Removal stops at the first young
-- entry of a chain, so that all removed entries are old and leave no gap. Returns nulls while another process
-- removes something.
create function remove_old_history(
  kept_days integer, at_most integer, out visited_entries integer, out removed_entries integer
)
language plpgsql security definer
as $$
declare
  cutoff timestamptz := retention_cutoff(kept_days);
  cutoff_id uuid := first_id_at(cutoff);
  visited_before uuid;
  last_visited uuid;
begin
  select visited_up_to into visited_before from audit_retention for update skip locked;
  if not found then
    return;
  end if;
  with visited as materialized (
    select id, flag_id, environment_id, sequence
    from history
    where id > visited_before and id < cutoff_id and changed_at < cutoff
    order by id
    limit at_most
  ), chains as (
    select flag_id, environment_id, max(sequence) as newest_old
    from visited
    group by flag_id, environment_id
  ), removable as (
    select entry.id
    from chains as chain
    cross join lateral (
      select coalesce(min(young.sequence), chain.newest_old + 1) as sequence
      from history as young
      where young.flag_id = chain.flag_id and young.environment_id = chain.environment_id
        and young.sequence < chain.newest_old
        and not (young.id < cutoff_id and young.changed_at < cutoff)
    ) as after_old
    cross join lateral (
      select earlier.sequence
      from history as earlier
      where earlier.flag_id = chain.flag_id and earlier.environment_id = chain.environment_id
        and earlier.sequence < after_old.sequence
      order by earlier.sequence desc
      offset 1 limit 1
    ) as oldest_kept
    cross join lateral (
      select earlier.id
      from history as earlier
      where earlier.flag_id = chain.flag_id and earlier.environment_id = chain.environment_id
        and earlier.sequence < oldest_kept.sequence
      offset 0
    ) as entry
  ), removed as (
    delete from history as entry
    where entry.id = any (array(select id from removable))
    returning entry.flag_id, entry.environment_id, entry.sequence, entry.hash
  ), recorded as (
    insert into removed_history as known (flag_id, environment_id, hash, entries)
    select flag_id, environment_id, (array_agg(hash order by sequence desc))[1], count(*)
    from removed
    group by flag_id, environment_id
    on conflict (flag_id, environment_id)
      do update set hash = excluded.hash, entries = known.entries + excluded.entries
  )
  select (select count(*) from visited), (select count(*) from removed),
    (select id from visited order by id desc limit 1)
  into visited_entries, removed_entries, last_visited;
  update audit_retention set visited_up_to = last_visited where last_visited is not null;
end
$$;

-- Removes the oldest entries of the audit log. The deletion of a flag takes what is left of the history of
-- that flag along, since verification compares the two. A deletion stays until all of that history is old. A
-- deletion of a flag that exists is forged and takes nothing along. Returns nulls while another process removes
-- something.
create function remove_old_changes(
  kept_days integer, at_most integer, out removed_changes integer, out removed_entries integer
)
language plpgsql security definer
as $$
declare
  cutoff timestamptz := retention_cutoff(kept_days);
  cutoff_id uuid := first_id_at(cutoff);
begin
  perform from audit_retention for update skip locked;
  if not found then
    return;
  end if;
  with removed as (
    delete from changes
    where id = any (array(
      select change.id from changes as change
      where change.id < cutoff_id and change.changed_at < cutoff
        and (change.action <> 'deleted' or (
          select true from history as young
          where young.flag_id = change.flag_id and young.environment_id = change.environment_id
            and not (young.id < cutoff_id and young.changed_at < cutoff)
          limit 1
        ) is null)
      order by change.id
      limit at_most
    ))
    returning action, flag_id, environment_id
  ), deleted_flags as (
    select flag_id, environment_id from removed
    where action = 'deleted'
      and (select true from flags as flag where flag.id = removed.flag_id) is null
  ), left_over as (
    delete from history
    where id = any (array(
      select entry.id
      from deleted_flags as deleted
      cross join lateral (
        select id from history as any_entry
        where any_entry.flag_id = deleted.flag_id
          and any_entry.environment_id = deleted.environment_id
        offset 0
      ) as entry
    ))
    returning id
  ), forgotten as (
    delete from removed_history as known
    using deleted_flags as deleted
    where known.flag_id = deleted.flag_id and known.environment_id = deleted.environment_id
  )
  select (select count(*) from removed), (select count(*) from left_over)
  into removed_changes, removed_entries;
  update audit_retention set removed_before = greatest(removed_before, cutoff)
  where removed_changes > 0;
end
$$;

-- When a key ended; null for one without an end. The keys are few enough to build this in the migration.
create index api_keys_by_end on api_keys (least(revoked_at, expires_at))
  where least(revoked_at, expires_at) is not null;

-- Removes keys that were revoked, or have expired, before the period. A key that is being used or changed is
-- left to the next time. Expired keys are still in the snapshot: the caller publishes their deletion.
create function remove_ended_keys(kept_days integer, at_most integer)
returns table (key_id text, organization_id uuid, next_version bigint, was_revoked boolean)
language sql security definer
begin atomic
  with ended as (
    select id from api_keys
    where least(revoked_at, expires_at) < retention_cutoff(kept_days)
    order by least(revoked_at, expires_at)
    limit at_most
    for update skip locked
  ), unseen as (
    delete from keys_last_seen where key_id = any (array(select id from ended))
  )
  delete from api_keys as key
  using environments as environment, projects as project
  where key.id = any (array(select id from ended))
    and environment.id = key.environment_id and project.id = environment.project_id
  returning key.id, project.organization_id, key.version + 1, key.revoked_at is not null;
end;

-- Temporary tables come last in the search path; otherwise one that is called `history` would be used
-- instead of the history, with the owner's rights.
do $$
declare
  name text;
begin
  foreach name in array array[
    'remove_old_history(integer, integer)',
    'remove_old_changes(integer, integer)',
    'remove_ended_keys(integer, integer)'
  ] loop
    execute format('alter function %s set search_path = %I, pg_temp', name, current_schema);
    execute format('revoke execute on function %s from public', name);
    execute format('grant execute on function %s to management_service', name);
  end loop;
end
$$;
