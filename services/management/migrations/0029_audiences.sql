-- Up Migration

-- Audiences: named sets of users of a project, by conditions and by a list.
create table audiences (
  id uuid primary key,
  organization_id uuid not null references organizations,
  project_id uuid not null references projects,
  key text not null collate "C",
  name text not null,
  description text not null,
  match jsonb not null,
  -- The list. The three columns are null without one.
  list_attribute text,
  list_id uuid,
  list_count integer,
  -- Raised by every change.
  version bigint not null,
  created_at timestamptz not null,
  updated_at timestamptz not null,
  constraint audience_key_taken unique (project_id, key),
  constraint lists_are_complete
    check (num_nulls(list_attribute, list_id, list_count) in (0, 3))
);

-- The entries of lists. Fingerprints are signed integers with the bits of the unsigned ones.
create table audience_members (
  list_id uuid not null,
  fingerprint bigint not null,
  member text not null collate "C",
  primary key (list_id, fingerprint, member)
);

-- Lists that no audience has: uploads in progress, and lists that were replaced or removed. Their entries are removed in
-- batches after `removable_at`. An upload ends before that time, or fails.
create table unused_lists (
  list_id uuid primary key,
  removable_at timestamptz not null
);
create index unused_lists_by_time on unused_lists (removable_at);

-- The fingerprints of each list, as the snapshot has them.
create table audience_chunks (
  audience_id uuid not null references audiences on delete cascade,
  position integer not null,
  sha256 text not null,
  bytes bytea not null,
  -- Version of the audience and time at which the chunk was published.
  version bigint not null,
  committed_at timestamptz not null,
  primary key (audience_id, position)
);
-- Fingerprints cannot be compressed.
alter table audience_chunks alter column bytes set storage external;

-- The key of SipHash for the fingerprints of each project.
create table fingerprint_keys (
  project_id uuid primary key references projects,
  key bytea not null
);

-- Append-only: each audience after each change, with numbers of entries in place of its list. `match` is null if the
-- change concerned only the list, because frequent changes of entries would store it each time.
create table audience_history (
  audience_id uuid not null references audiences on delete cascade,
  version bigint not null,
  change text not null,
  name text not null,
  description text not null,
  match jsonb,
  list_attribute text,
  list_count integer,
  added integer,
  removed integer,
  changed_by uuid not null,
  changed_at timestamptz not null,
  primary key (audience_id, version)
);
create index audience_history_by_age on audience_history (changed_at);

grant select, insert, delete on audiences, audience_members, unused_lists, audience_chunks
  to management_service;
grant select, insert on fingerprint_keys, audience_history to management_service;
grant update (name, description, match, list_attribute, list_id, list_count, version, updated_at)
  on audiences to management_service;
-- A row lock needs the right to update some column.
grant update (removable_at) on unused_lists to management_service;

-- The audit log records changes of audiences.
alter table changes add column audience_key text;
grant insert (audience_key) on changes to management_service;

-- The size of an audience counts once, and not for each environment or flag: the conditions as JSON like rules, and 8
-- bytes for each entry of the list.
create function configuration_bytes_of_audience(match jsonb, list_count integer) returns integer
language sql immutable parallel safe
return octet_length(json_strip_nulls(match::json)::text) - 2 + 8 * coalesce(list_count, 0);

alter table audiences
  add column configuration_bytes integer not null
  generated always as (configuration_bytes_of_audience(match, list_count)) stored;

create function add_configuration_bytes_of_audience() returns trigger
language plpgsql security definer
as $$
begin
  insert into configuration_sizes as size (organization_id, bytes)
  values (
    coalesce(new.organization_id, old.organization_id),
    coalesce(new.configuration_bytes, 0) - coalesce(old.configuration_bytes, 0)
  )
  on conflict (organization_id) do update set bytes = size.bytes + excluded.bytes;
  return null;
end
$$;

create trigger configuration_added after insert on audiences
  for each row when (new.configuration_bytes > 0)
  execute function add_configuration_bytes_of_audience();
create trigger configuration_changed after update on audiences
  for each row when (new.configuration_bytes <> old.configuration_bytes)
  execute function add_configuration_bytes_of_audience();
create trigger configuration_removed after delete on audiences
  for each row when (old.configuration_bytes > 0)
  execute function add_configuration_bytes_of_audience();

-- As in 0012. Audiences and chunks wait in the queue of flags, so that a list delays no API key, and so that an audience
-- precedes the flags that use it.
drop index outbox_queues;
create or replace function outbox_queue(
  sent_at timestamptz, stream text, subject text, payload text
)
returns text
language sql immutable parallel safe
return case
  when sent_at is not null then null
  when stream = 'events' then 'events ' || coalesce(payload::jsonb ->> 'organization_id', '')
  when split_part(subject, '.', 2) in ('flag', 'audience', 'chunk')
    then 'flags ' || split_part(subject, '.', 1)
  else 'keys ' || split_part(subject, '.', 1)
end;
create index outbox_queues on outbox (
  (outbox_queue(sent_at, stream, subject, payload) collate "C"), id
) where (outbox_queue(sent_at, stream, subject, payload) collate "C") is not null;

-- Finds the deletions of chunks, which are removed after minutes.
create index outbox_deleted_chunks on outbox (sent_at)
  where sent_at is not null and tombstone and split_part(subject, '.', 2) = 'chunk';

-- Published chunks are not kept in the outbox for seven days like other rows, which are small.
grant update (payload) on outbox to management_service;

-- Removes audiences of deleted projects, at most this number. Returns the keys and versions of the entries whose
-- tombstones the caller publishes: those of the audiences and their chunks.
create function remove_audiences_of_deleted(at_most integer)
returns table (entry_key text, next_version bigint)
language sql security definer
begin atomic
  with gone as materialized (
    select audience.id, audience.organization_id, audience.project_id, audience.list_id,
      audience.version
    from audiences as audience
    join projects as project on project.id = audience.project_id
    where project.deleted_at is not null and project.emptied_at is null
    order by audience.id
    limit at_most
    for update of audience skip locked
  ), chunk as materialized (
    select distinct gone.organization_id, gone.id, gone.version, any_chunk.sha256
    from gone
    join audience_chunks as any_chunk on any_chunk.audience_id = gone.id
  ), unused as (
    insert into unused_lists (list_id, removable_at)
    select list_id, now() from gone where list_id is not null
  ), removed as (
    delete from audiences where id = any (array(select id from gone))
  )
  select organization_id || '.audience.' || project_id || '.' || id, version + 1 from gone
  union all
  select organization_id || '.chunk.' || id || '.' || sha256, version + 1 from chunk;
end;

-- As in 0015, and removes the fingerprint key of a deleted project. Projects with audiences are left to
-- `remove_audiences_of_deleted`.
create or replace function remove_rest_of_deleted(at_most integer) returns boolean
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
    and not exists (select from audiences as audience where audience.project_id = project.id)
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
      delete from fingerprint_keys where project_id = subject;
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

-- Retention of the history of audiences. The newest entry of each audience stays. Returns the number of removed entries.
create function remove_old_audience_history(kept_days integer, at_most integer) returns bigint
language sql security definer
begin atomic
  with removed as (
    delete from audience_history
    where (audience_id, version) = any (array(
      select (entry.audience_id, entry.version)
      from audience_history as entry
      join audiences as audience on audience.id = entry.audience_id
      where entry.changed_at < retention_cutoff(kept_days) and entry.version < audience.version
      order by entry.changed_at
      limit at_most
    ))
    returning version
  )
  select count(*) from removed;
end;

-- As in 0010: a temporary table must not be used in place of the schema's own.
do $$
declare
  name text;
begin
  execute format(
    'alter function add_configuration_bytes_of_audience() set search_path = %I, pg_temp',
    current_schema
  );
  foreach name in array array[
    'remove_audiences_of_deleted(integer)',
    'remove_old_audience_history(integer, integer)',
    'remove_rest_of_deleted(integer)'
  ] loop
    execute format('alter function %s set search_path = %I, pg_temp', name, current_schema);
    execute format('revoke execute on function %s from public', name);
    execute format('grant execute on function %s to management_service', name);
  end loop;
end
$$;
