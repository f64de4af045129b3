-- Up Migration

-- Verification of the history reads only the history and `removed_before`. The recorded ends and beginnings of chains
-- have no other purpose, so they go. Retention finds the chains of deleted flags and environments by their missing
-- states.

drop function remove_old_history(integer, integer);
drop function remove_old_changes(integer, integer);
drop function remove_ended_history(integer, integer);
drop function end_history(uuid[], uuid[]);
drop index changes_of_deletions;

-- From now on, the newest time of an entry of the history that retention may have removed: a chain may begin with an
-- entry that is at most this old. The oldest entries of shortened chains were old when their predecessors were removed.
update audit_retention
set removed_before = greatest(removed_before, (
  select max(oldest.changed_at)
  from removed_history as removed
  cross join lateral (
    select entry.changed_at
    from history as entry
    where entry.flag_id = removed.flag_id and entry.environment_id = removed.environment_id
    order by entry.sequence
    limit 1
  ) as oldest
));
alter table audit_retention drop column visited_up_to;
drop table ended_history, removed_history;

-- As in 0010, `offset` and `any (array())` keep plans to index scans.

-- Visits old entries in the order of their ids, from `visited_up_to` on, and removes those before them in the same
-- chain. Each chain keeps its entries that are younger than the period and two older ones: the state at the beginning
-- of the period, and the state that a rollback would restore. A chain without a state and without a young entry keeps
-- nothing, because its flag or environment was deleted. Removal stops at the first young entry of a chain, so that all
-- removed entries are old and leave no gap. Returns nulls while another process removes something.
create function remove_old_history(
  kept_days integer, visited_up_to uuid, at_most integer,
  out visited_entries integer, out last_visited uuid, out removed_entries integer
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
  with visited as materialized (
    select id, flag_id, environment_id, sequence
    from history
    where id > visited_up_to and id < cutoff_id and changed_at < cutoff
    order by id
    limit at_most
  ), places as (
    select flag_id, environment_id, max(sequence) as newest_old
    from visited
    group by flag_id, environment_id
  ), chains as (
    select place.flag_id, place.environment_id,
      coalesce(
        (
          select min(young.sequence) from history as young
          where young.flag_id = place.flag_id and young.environment_id = place.environment_id
            and young.sequence < place.newest_old
            and not (young.id < cutoff_id and young.changed_at < cutoff)
        ),
        place.newest_old + 1
      ) as before_sequence,
      -- Evaluates the second look-up only without a state.
      case when coalesce(
        (
          select true from flag_states as state
          where state.flag_id = place.flag_id and state.environment_id = place.environment_id
        ),
        (
          select true from history as young
          where young.flag_id = place.flag_id and young.environment_id = place.environment_id
            and not (young.id < cutoff_id and young.changed_at < cutoff)
          limit 1
        )
      ) then 2 else 0 end as kept
    from places as place
  ), removed as (
    delete from history
    where id = any (array(
      select entry.id
      from chains as chain
      cross join lateral (
        select earlier.id
        from history as earlier
        where earlier.flag_id = chain.flag_id and earlier.environment_id = chain.environment_id
          and earlier.sequence < chain.before_sequence
        order by earlier.sequence desc
        offset chain.kept
      ) as entry
    ))
    returning id
  )
  select (select count(*) from visited), (select id from visited order by id desc limit 1),
    (select count(*) from removed)
  into visited_entries, last_visited, removed_entries;
  update audit_retention set removed_before = greatest(removed_before, cutoff)
  where removed_entries > 0;
end
$$;

-- Removes the oldest entries of the audit log. Concurrent calls share the rows by locks.
create function remove_old_changes(kept_days integer, at_most integer) returns bigint
language sql security definer
begin atomic
  with removed as (
    delete from changes
    where id = any (array(
      select id from changes
      where id < first_id_at(retention_cutoff(kept_days))
        and changed_at < retention_cutoff(kept_days)
      order by id
      limit at_most
      for update skip locked
    ))
    returning id
  )
  select count(*) from removed;
end;

-- As in 0010: a temporary table must not be used in place of the schema's own.
do $$
declare
  name text;
begin
  foreach name in array array[
    'remove_old_history(integer, uuid, integer)',
    'remove_old_changes(integer, integer)'
  ] loop
    execute format('alter function %s set search_path = %I, pg_temp', name, current_schema);
    execute format('revoke execute on function %s from public', name);
    execute format('grant execute on function %s to management_service', name);
  end loop;
end
$$;
