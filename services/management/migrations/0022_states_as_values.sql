-- Up Migration

-- The state of a flag is one value, here and in messages: a member that is added later needs no column. The service
-- checks a state against its schema when it writes it. The domain repeats what every statement relies on.
-- A comparison with a value of another type is unknown, and a check accepts what is unknown; hence "is true". Statements
-- that change no state pass null; the columns do not accept it.
create domain flag_content as jsonb check (
  value is null or (value @@ 'strict $.enabled.type() == "boolean" && $.targeting_rules.type() == "array"
    && $.rollout_percentage.type() == "number"
    && $.rollout_percentage >= 0 && $.rollout_percentage <= 100') is true
);

-- The type of a column is changed, instead of adding a column, because its grants remain. Each table is rewritten once,
-- and is locked meanwhile.
drop function hash_of_history_entry;

alter table flag_states
  alter column targeting_rules type flag_content using jsonb_build_object('enabled', enabled,
    'rollout_percentage', rollout_percentage, 'targeting_rules', targeting_rules),
  drop column enabled,
  drop column rollout_percentage;
alter table flag_states rename column targeting_rules to content;

-- Existing entries keep their hashes, so heads that are stored elsewhere remain valid. Version 1 of the hash contains
-- the three members of `content` beside the other columns, version 2 contains `content` and the version.
alter table history
  alter column targeting_rules type flag_content using jsonb_build_object('enabled', enabled,
    'rollout_percentage', rollout_percentage, 'targeting_rules', targeting_rules),
  drop column enabled,
  drop column rollout_percentage,
  add column hash_version smallint not null default 1;
alter table history rename column targeting_rules to content;
alter table history alter column hash_version drop default;

create function hash_of_history_entry(entry history) returns bytea
language sql stable
return sha256(
  (entry).previous_hash || convert_to(
    jsonb_build_object(
      'hash_version', (entry).hash_version,
      'id', (entry).id,
      'flag_id', (entry).flag_id,
      'environment_id', (entry).environment_id,
      'sequence', (entry).sequence,
      'content', (entry).content,
      'change_type', (entry).change_type,
      'changed_by', (entry).changed_by,
      'changed_at', extract(epoch from (entry).changed_at)
    )::text,
    'UTF8'
  )
);

-- As in 0004. Without a right to `hash_version`, no statement of the service can choose it.
create or replace function link_history_entry() returns trigger
language plpgsql
as $$
begin
  new.hash_version := 2;
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

do $$
begin
  execute format('alter function link_history_entry() set search_path = %I, pg_temp', current_schema);
end
$$;
