-- Up Migration

-- The audit log records changes of webhooks, schedules, projects and users too, and the API key that made each change.

alter table changes
  -- The API key used for the change. Null for the operator, for scheduled changes, and for entries that are older
  -- than this migration. `key_id` is the key that was changed.
  add column api_key_id text,
  add column webhook_id uuid,
  add column user_id uuid,
  -- Set for changes of users, which belong to no single project. They are part of the audit log of every project of
  -- the organization. All other entries have a project instead.
  add column organization_id uuid,
  alter column project_id drop not null,
  -- Only code knows all actions and their subjects. A new constraint could reject rows of release 0.1.0 during an upgrade.
  drop constraint action_fits_subject;

create index changes_of_organization_newest_first on changes (organization_id, sequence desc)
  where organization_id is not null;

grant insert (api_key_id, webhook_id, user_id, organization_id) on changes to management_service;

-- Where chains of the history ended that were deleted together with their environment, project or organization.
-- The audit log has no entry for each of these flags. Verification requires that such a chain ends with this hash.
create table ended_history (
  flag_id uuid not null,
  environment_id uuid not null,
  -- The hash of the newest entry.
  hash bytea not null,
  ended_at timestamptz not null,
  primary key (flag_id, environment_id)
);
create index ended_history_by_end on ended_history (ended_at);

grant select on ended_history to management_service;

-- Records the ends of chains. The hashes come from the history itself, so the runtime role cannot choose them.
create function end_history(flag_ids uuid[], environment_ids uuid[]) returns void
language sql security definer
begin atomic
  insert into ended_history (flag_id, environment_id, hash, ended_at)
  select place.flag_id, place.environment_id, newest.hash, now()
  from unnest(flag_ids, environment_ids) as place (flag_id, environment_id)
  cross join lateral (
    select entry.hash
    from history as entry
    where entry.flag_id = place.flag_id and entry.environment_id = place.environment_id
    order by entry.sequence desc
    limit 1
  ) as newest
  on conflict (flag_id, environment_id) do nothing;
end;

-- Retention of ended chains. The end goes with the rest of its history, once all of that is old. An end of a chain
-- that still has a state is forged and takes nothing along. Returns nulls while another process removes something.
create function remove_ended_history(
  kept_days integer, at_most integer, out removed_chains integer, out removed_entries integer
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
    delete from ended_history as removable
    using (
      select flag_id, environment_id
      from ended_history as ended
      where ended.ended_at < cutoff
        and (
          select true from history as young
          where young.flag_id = ended.flag_id and young.environment_id = ended.environment_id
            and not (young.id < cutoff_id and young.changed_at < cutoff)
          limit 1
        ) is null
        and not exists (
          select from flag_states as state
          where state.flag_id = ended.flag_id and state.environment_id = ended.environment_id
        )
      order by ended.ended_at
      limit at_most
    ) as old
    where removable.flag_id = old.flag_id and removable.environment_id = old.environment_id
    returning removable.flag_id, removable.environment_id
  ), left_over as (
    delete from history
    where id = any (array(
      select entry.id
      from removed
      cross join lateral (
        select id from history as any_entry
        where any_entry.flag_id = removed.flag_id
          and any_entry.environment_id = removed.environment_id
        offset 0
      ) as entry
    ))
    returning id
  ), forgotten as (
    delete from removed_history as known
    using removed
    where known.flag_id = removed.flag_id and known.environment_id = removed.environment_id
  )
  select (select count(*) from removed), (select count(*) from left_over)
  into removed_chains, removed_entries;
  update audit_retention set removed_before = greatest(removed_before, cutoff)
  where removed_chains > 0;
end
$$;

-- As in 0010: a temporary table must not be used in place of the schema's own.
do $$
declare
  name text;
begin
  foreach name in array array[
    'end_history(uuid[], uuid[])',
    'remove_ended_history(integer, integer)'
  ] loop
    execute format('alter function %s set search_path = %I, pg_temp', name, current_schema);
    execute format('revoke execute on function %s from public', name);
    execute format('grant execute on function %s to management_service', name);
  end loop;
end
$$;
