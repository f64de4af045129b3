-- Up Migration

-- Each entry of the history carries the hash of the one before it, per flag and environment, so that
-- an entry that is changed, removed or put in afterwards breaks the chain, and `npm run
-- verify-history` finds where. The hashes are the database's own doing: no program can forget them,
-- and the release before this one writes them without knowing.

alter table history
  -- Empty for the first entry of a chain.
  add column previous_hash bytea,
  add column hash bytea;

-- The same order serves both directions: newest first for readers, oldest first for verification.
create unique index history_in_order on history (flag_id, environment_id, sequence);
drop index history_newest_first;

-- SHA-256 over the hash before and all that the entry says, as JSON text: jsonb writes it in one way
-- only, and the instant is a number because a timestamp's text depends on the session's time zone.
create function hash_of_history_entry(entry history) returns bytea
language sql stable
return sha256(
  (entry).previous_hash || convert_to(
    jsonb_build_object(
      'id', (entry).id,
      'flag_id', (entry).flag_id,
      'environment_id', (entry).environment_id,
      'sequence', (entry).sequence,
      'enabled', (entry).enabled,
      'rollout_percentage', (entry).rollout_percentage,
      'targeting_rules', (entry).targeting_rules,
      'change_type', (entry).change_type,
      'changed_by', (entry).changed_by,
      'changed_at', extract(epoch from (entry).changed_at)
    )::text,
    'UTF8'
  )
);

-- Entries of one chain are only ever added under the lock of their flag, or together with it, so the
-- newest that is seen here is the newest there is. Whatever the statement says of the hashes is
-- replaced.
create function link_history_entry() returns trigger
language plpgsql
as $$
begin
  new.previous_hash := coalesce(
    (
      select entry.hash
      from history as entry
      where entry.flag_id = new.flag_id and entry.environment_id = new.environment_id
      order by entry.sequence desc
      limit 1
    ),
    ''
  );
  new.hash := hash_of_history_entry(new);
  return new;
end
$$;

-- Temporary tables come last in its search path; otherwise one that is called `history` would stand in
-- for the history.
do $$
begin
  execute format('alter function link_history_entry() set search_path = %I, pg_temp', current_schema);
end
$$;

-- What was written before there were hashes. Nobody adds an entry meanwhile: the table is locked since
-- it got its new columns.
do $$
declare
  entry history;
  newest history;
begin
  for entry in select * from history order by flag_id, environment_id, sequence loop
    entry.previous_hash := case
      when (entry.flag_id, entry.environment_id) = (newest.flag_id, newest.environment_id)
        then newest.hash
      else ''
    end;
    entry.hash := hash_of_history_entry(entry);
    update history
    set previous_hash = entry.previous_hash, hash = entry.hash
    where id = entry.id;
    newest := entry;
  end loop;
end
$$;

alter table history
  alter column previous_hash set not null,
  alter column hash set not null;

create trigger link_history_entry before insert on history
for each row execute function link_history_entry();

-- Sequences and hashes are given by the database alone: without a right to these columns no statement
-- of the service can name them.
revoke insert on history, changes from management_service;
grant insert (id, flag_id, environment_id, enabled, rollout_percentage, targeting_rules, change_type,
  changed_by, changed_at) on history to management_service;
grant insert (id, project_id, environment_id, flag_id, flag_key, key_id, action, cause, actor_id,
  actor_email, state_before, state_after, changed_at) on changes to management_service;

-- For keys that see the changes of their own environment only.
create index changes_of_environment_newest_first on changes (project_id, environment_id, sequence desc)
  where environment_id is not null;
